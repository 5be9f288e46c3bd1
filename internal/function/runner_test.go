// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package function

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"

	fnv1 "github.com/crosswatch-io/crosswatch/api/fn/v1"
	pkgv1 "github.com/crosswatch-io/crosswatch/api/pkg/v1"
	"github.com/crosswatch-io/crosswatch/internal/dependency"
)

var (
	kindConfigMap = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	kindSecret    = schema.GroupVersionKind{Version: "v1", Kind: "Secret"}
)

// A step whose requirements are known calls its function once, by whichever
// field the function asked. The server counts.
func TestRunCallsOnceWhenSeeded(t *testing.T) {
	selectors := map[string]*fnv1.ResourceSelector{
		"one":   byName("ns", "a"),
		"none":  byName("ns", "missing"),
		"some":  byLabels(map[string]string{"app": "web"}),
		"every": {ApiVersion: "v1", Kind: "ConfigMap"},
	}
	schemas := map[string]*fnv1.SchemaSelector{
		"built-in": {ApiVersion: "apps/v1", Kind: "Deployment"},
		"defined":  {ApiVersion: "example.org/v1", Kind: "Widget"},
		"unknown":  {ApiVersion: "example.org/v1", Kind: "Gadget"},
	}
	cases := map[string]*fnv1.Requirements{
		"Nothing":        nil,
		"Resources":      {Resources: selectors},
		"ExtraResources": {ExtraResources: selectors},
		"Schemas":        {Schemas: schemas},
		"All":            {Resources: selectors, ExtraResources: selectors, Schemas: schemas},
	}
	for name, requirements := range cases {
		t.Run(name, func(t *testing.T) {
			var last *fnv1.RunFunctionRequest
			s := serve(t, serverConfig{}, func(ctx context.Context, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
				last = req
				return asks(requirements)(ctx, req)
			})
			i := newInstalled()
			i.development("f", s.address)
			runner := newRunner(t, connect(t, i, nil))
			in := newCluster(
				configMap("ns", "a", map[string]string{"app": "web"}),
				configMap("ns", "b", nil),
				widgets("widgets.example.org"),
			)

			first, err := runner.Run(t.Context(), step(in))
			if err != nil {
				t.Fatal(err)
			}
			rounds := 2
			if requirements == nil {
				rounds = 1
			}
			if first.Rounds != rounds || s.calls.Load() != int64(rounds) {
				t.Errorf("the first run took %d calls, of which the server saw %d; want %d", first.Rounds, s.calls.Load(), rounds)
			}
			in.tracker.Track(testXR, nil, first.Requirements)
			unseeded := last

			second, err := runner.Run(t.Context(), step(in))
			if err != nil {
				t.Fatal(err)
			}
			if second.Rounds != 1 || s.calls.Load() != int64(rounds)+1 {
				t.Errorf("the second run took %d calls, the server saw %d in all; want 1 and %d", second.Rounds, s.calls.Load(), rounds+1)
			}
			if diff := cmp.Diff(unseeded, last, protocmp.Transform()); diff != "" {
				t.Errorf("the seeded request differs from the one that settled the first run:\n%s", diff)
			}
			if diff := cmp.Diff(first.Requirements, second.Requirements); diff != "" {
				t.Errorf("requirements: -first run +second run:\n%s", diff)
			}
			if got, want := len(last.GetRequiredResources()), len(requirements.GetResources()); got != want {
				t.Errorf("got %d entries in required_resources, want %d", got, want)
			}
			if got, want := len(last.GetExtraResources()), len(requirements.GetExtraResources()); got != want { //nolint:staticcheck // Older functions know nothing else.
				t.Errorf("got %d entries in extra_resources, want %d", got, want)
			}
			if got, want := len(last.GetRequiredSchemas()), len(requirements.GetSchemas()); got != want {
				t.Errorf("got %d entries in required_schemas, want %d", got, want)
			}
		})
	}
}

// shown is what of a request matters here.
type shown struct {
	Resources, Extra map[string][]string // namespace/name of each item
	Schemas          []string
}

func show(req *fnv1.RunFunctionRequest) shown {
	names := func(in map[string]*fnv1.Resources) map[string][]string {
		out := map[string][]string{}
		for key, rs := range in {
			out[key] = []string{}
			for _, r := range rs.GetItems() {
				metadata := r.GetResource().GetFields()["metadata"].GetStructValue().GetFields()
				out[key] = append(out[key], metadata["namespace"].GetStringValue()+"/"+metadata["name"].GetStringValue())
			}
		}
		return out
	}
	s := shown{Resources: names(req.GetRequiredResources()), Extra: names(req.GetExtraResources())} //nolint:staticcheck // Older functions know nothing else.
	for key := range req.GetRequiredSchemas() {
		s.Schemas = append(s.Schemas, key)
	}
	slices.Sort(s.Schemas)
	return s
}

func none() map[string][]string { return map[string][]string{} }

func TestRunRounds(t *testing.T) {
	// has tells whether the function was shown resources under that name.
	has := func(req *fnv1.RunFunctionRequest, name string) bool {
		_, ok := req.GetRequiredResources()[name]
		return ok
	}
	a, b := byName("ns", "a"), byName("ns", "b")
	seed := func(from dependency.Source, name, object string) dependency.Requirement {
		return dependency.Requirement{
			Step: "step", Name: name, From: from,
			Reference: dependency.Reference{GVK: kindConfigMap, Namespace: "ns", Name: object},
		}
	}

	cases := map[string]struct {
		reason    string
		seeds     []dependency.Requirement
		bootstrap []dependency.Requirement
		asks      func(req *fnv1.RunFunctionRequest) *fnv1.Requirements
		want      []shown
		required  []string // source, name and object of what Run returned
	}{
		"B4Missing": {
			reason: "A function can tell that there is none from that it has not asked.",
			asks: func(*fnv1.RunFunctionRequest) *fnv1.Requirements {
				return resources(map[string]*fnv1.ResourceSelector{"x": byName("ns", "missing")})
			},
			want: []shown{
				{Resources: none(), Extra: none()},
				{Resources: map[string][]string{"x": {}}, Extra: none()},
			},
			required: []string{"Resources x missing"},
		},
		"Chain": {
			reason: "What it sees can make a function ask for more, while it goes on asking for the rest.",
			asks: func(req *fnv1.RunFunctionRequest) *fnv1.Requirements {
				r := resources(map[string]*fnv1.ResourceSelector{"a": a})
				if has(req, "a") {
					r.Resources["b"] = b
				}
				return r
			},
			want: []shown{
				{Resources: none(), Extra: none()},
				{Resources: map[string][]string{"a": {"ns/a"}}, Extra: none()},
				{Resources: map[string][]string{"a": {"ns/a"}, "b": {"ns/b"}}, Extra: none()},
			},
			required: []string{"Resources a a", "Resources b b"},
		},
		"OneByOne": {
			reason: "What an earlier round showed may be what the answer rests on, though the function no longer asks for it.",
			asks: func(req *fnv1.RunFunctionRequest) *fnv1.Requirements {
				if has(req, "a") || has(req, "b") {
					return resources(map[string]*fnv1.ResourceSelector{"b": b})
				}
				return resources(map[string]*fnv1.ResourceSelector{"a": a})
			},
			want: []shown{
				{Resources: none(), Extra: none()},
				{Resources: map[string][]string{"a": {"ns/a"}}, Extra: none()},
				{Resources: map[string][]string{"b": {"ns/b"}}, Extra: none()},
			},
			required: []string{"Resources b b", "Shown a a"},
		},
		"StaleSeed": {
			reason: "What a function no longer asks for is taken away from it, and forgotten.",
			seeds:  []dependency.Requirement{seed(dependency.Resources, "a", "a"), seed(dependency.ExtraResources, "b", "b")},
			asks: func(*fnv1.RunFunctionRequest) *fnv1.Requirements {
				return resources(map[string]*fnv1.ResourceSelector{"a": a})
			},
			want: []shown{
				{Resources: map[string][]string{"a": {"ns/a"}}, Extra: map[string][]string{"b": {"ns/b"}}},
				{Resources: map[string][]string{"a": {"ns/a"}}, Extra: none()},
			},
			required: []string{"Resources a a"},
		},
		"OtherSelector": {
			reason: "The same name with another selector is another requirement.",
			seeds:  []dependency.Requirement{seed(dependency.Resources, "a", "b")},
			asks: func(*fnv1.RunFunctionRequest) *fnv1.Requirements {
				return resources(map[string]*fnv1.ResourceSelector{"a": a})
			},
			want: []shown{
				{Resources: map[string][]string{"a": {"ns/b"}}, Extra: none()},
				{Resources: map[string][]string{"a": {"ns/a"}}, Extra: none()},
			},
			required: []string{"Resources a a"},
		},
		"OtherField": {
			reason: "A requirement is answered where it was asked for.",
			seeds:  []dependency.Requirement{seed(dependency.Resources, "a", "a")},
			asks: func(*fnv1.RunFunctionRequest) *fnv1.Requirements {
				return &fnv1.Requirements{ExtraResources: map[string]*fnv1.ResourceSelector{"a": a}} //nolint:staticcheck // Older functions know nothing else.
			},
			want: []shown{
				{Resources: map[string][]string{"a": {"ns/a"}}, Extra: none()},
				{Resources: none(), Extra: map[string][]string{"a": {"ns/a"}}},
			},
			required: []string{"ExtraResources a a"},
		},
		"Bootstrap": {
			reason: "What the Composition declares is there from the first call on, asked for or not.",
			bootstrap: []dependency.Requirement{
				seed(dependency.Bootstrap, "a", "a"),
				{Name: "s", Subject: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}},
			},
			asks: func(*fnv1.RunFunctionRequest) *fnv1.Requirements { return nil },
			want: []shown{
				{Resources: map[string][]string{"a": {"ns/a"}}, Extra: none(), Schemas: []string{"s"}},
			},
			required: []string{"Bootstrap a a", "Bootstrap s deployments.apps"},
		},
		"BootstrapAsked": {
			reason:    "Asking for what the Composition declares costs no call, asking otherwise does.",
			bootstrap: []dependency.Requirement{seed(dependency.Bootstrap, "a", "a"), seed(dependency.Bootstrap, "b", "a")},
			asks: func(*fnv1.RunFunctionRequest) *fnv1.Requirements {
				return resources(map[string]*fnv1.ResourceSelector{"a": a, "b": b})
			},
			want: []shown{
				{Resources: map[string][]string{"a": {"ns/a"}, "b": {"ns/a"}}, Extra: none()},
				{Resources: map[string][]string{"a": {"ns/a"}, "b": {"ns/b"}}, Extra: none()},
			},
			required: []string{"Resources a a", "Resources b b", "Bootstrap a a", "Bootstrap b a"},
		},
		"Forgetful": {
			reason: "A function that stops asking once it has been served has still seen the object.",
			asks: func(req *fnv1.RunFunctionRequest) *fnv1.Requirements {
				if has(req, "a") {
					return nil
				}
				return resources(map[string]*fnv1.ResourceSelector{"a": a})
			},
			want: []shown{
				{Resources: none(), Extra: none()},
				{Resources: map[string][]string{"a": {"ns/a"}}, Extra: none()},
			},
			required: []string{"Resources a a"},
		},
		"SeenForAStaleSeed": {
			reason: "What a function asked for only in view of a stale seed is taken away as well.",
			seeds:  []dependency.Requirement{seed(dependency.Resources, "a", "a")},
			asks: func(req *fnv1.RunFunctionRequest) *fnv1.Requirements {
				if has(req, "a") {
					return resources(map[string]*fnv1.ResourceSelector{"b": b})
				}
				return nil
			},
			want: []shown{
				{Resources: map[string][]string{"a": {"ns/a"}}, Extra: none()},
				{Resources: map[string][]string{"b": {"ns/b"}}, Extra: none()},
				{Resources: none(), Extra: none()},
			},
		},
		"ForgetfulSeeded": {
			reason: "A function that stops asking takes three calls each time, and never loses what it saw.",
			seeds:  []dependency.Requirement{seed(dependency.Resources, "a", "a")},
			asks: func(req *fnv1.RunFunctionRequest) *fnv1.Requirements {
				if has(req, "a") {
					return nil
				}
				return resources(map[string]*fnv1.ResourceSelector{"a": a})
			},
			want: []shown{
				{Resources: map[string][]string{"a": {"ns/a"}}, Extra: none()},
				{Resources: none(), Extra: none()},
				{Resources: map[string][]string{"a": {"ns/a"}}, Extra: none()},
			},
			required: []string{"Resources a a"},
		},
		"SeedsThatCallEachOther": {
			reason: "A function that would ask for nothing by itself is not led astray for ever.",
			seeds:  []dependency.Requirement{seed(dependency.Resources, "a", "a")},
			asks: func(req *fnv1.RunFunctionRequest) *fnv1.Requirements {
				switch {
				case has(req, "a"):
					return resources(map[string]*fnv1.ResourceSelector{"b": b})
				case has(req, "b"):
					return resources(map[string]*fnv1.ResourceSelector{"a": a})
				}
				return nil
			},
			want: []shown{
				{Resources: map[string][]string{"a": {"ns/a"}}, Extra: none()},
				{Resources: map[string][]string{"b": {"ns/b"}}, Extra: none()},
				{Resources: none(), Extra: none()},
			},
		},
		"B2Order": {
			reason: "Objects come by namespace, then name, in whatever order they are kept.",
			asks: func(*fnv1.RunFunctionRequest) *fnv1.Requirements {
				return resources(map[string]*fnv1.ResourceSelector{"all": byLabels(nil)})
			},
			want: []shown{
				{Resources: none(), Extra: none()},
				{Resources: map[string][]string{"all": {"above/z", "ns/a", "ns/b"}}, Extra: none()},
			},
			required: []string{"Resources all "},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in := newCluster(configMap("ns", "b", nil), configMap("above", "z", nil), configMap("ns", "a", nil))
			in.tracker.Track(testXR, nil, tc.seeds)
			fn := &script{body: func(_ context.Context, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
				return &fnv1.RunFunctionResponse{Requirements: tc.asks(req)}, nil
			}}
			s := step(in)
			s.Bootstrap = tc.bootstrap
			got, err := newRunner(t, fn).Run(t.Context(), s)
			if err != nil {
				t.Fatalf("%s\n%v", tc.reason, err)
			}
			var saw []shown
			for _, req := range fn.requests {
				saw = append(saw, show(req))
			}
			if diff := cmp.Diff(tc.want, saw); diff != "" {
				t.Errorf("%s\nrequests: -want +got:\n%s", tc.reason, diff)
			}
			if got.Rounds != len(tc.want) {
				t.Errorf("%s\ngot %d calls, want %d", tc.reason, got.Rounds, len(tc.want))
			}
			var required []string
			for _, r := range got.Requirements {
				required = append(required, fmt.Sprintf("%s %s %s", r.From, r.Name, r.Reference.Name))
			}
			if diff := cmp.Diff(tc.required, required); diff != "" {
				t.Errorf("%s\nrequirements: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestRunSettlesOnHotObjects(t *testing.T) {
	// The object changes with each call; the step reads it once all the same.
	in := newCluster(configMap("ns", "a", nil))
	version := 0
	fn := &script{body: func(_ context.Context, _ *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
		version++
		in.remove("a")
		in.add(configMap("ns", "a", map[string]string{"version": strconv.Itoa(version)}))
		r := resources(map[string]*fnv1.ResourceSelector{"a": byName("ns", "a")})
		if version > 1 {
			r.Resources["again"] = byName("ns", "a")
		}
		return &fnv1.RunFunctionResponse{Requirements: r}, nil
	}}
	got, err := newRunner(t, fn).Run(t.Context(), step(in))
	if err != nil {
		t.Fatal(err)
	}
	if got.Rounds != 3 || in.reads != 1 {
		t.Errorf("got %d calls and %d reads, want 3 and 1", got.Rounds, in.reads)
	}
	last := fn.requests[2].GetRequiredResources()
	if diff := cmp.Diff(last["a"], last["again"], protocmp.Transform()); diff != "" {
		t.Errorf("the function saw one object in two versions:\n%s", diff)
	}
}

func TestRunHandsContextOn(t *testing.T) {
	var saw []float64
	fn := &script{body: func(_ context.Context, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
		number := req.GetContext().GetFields()["n"].GetNumberValue()
		saw = append(saw, number)
		return &fnv1.RunFunctionResponse{
			Context:      contextOf(number + 1),
			Requirements: resources(map[string]*fnv1.ResourceSelector{"a": byName("ns", "a")}),
		}, nil
	}}
	s := step(newCluster())
	s.Request = &fnv1.RunFunctionRequest{Context: contextOf(7)}
	before := proto.CloneOf(s.Request)
	if _, err := newRunner(t, fn).Run(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]float64{7, 8}, saw); diff != "" {
		t.Errorf("contexts: -want +got:\n%s", diff)
	}
	if diff := cmp.Diff(before, s.Request, protocmp.Transform()); diff != "" {
		t.Errorf("the step's request was changed:\n%s", diff)
	}
}

func contextOf(n float64) *structpb.Struct {
	return &structpb.Struct{Fields: map[string]*structpb.Value{"n": structpb.NewNumberValue(n)}}
}

func TestRunTagsRequests(t *testing.T) {
	in := newCluster(configMap("ns", "a", map[string]string{"x": "1", "y": "2", "z": "3"}))
	fn := &script{body: func(_ context.Context, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
		return &fnv1.RunFunctionResponse{
			Meta:         &fnv1.ResponseMeta{Tag: req.GetMeta().GetTag()},
			Requirements: resources(map[string]*fnv1.ResourceSelector{"a": byName("ns", "a")}),
		}, nil
	}}
	runner := newRunner(t, fn)
	tags := func() (out []string) {
		fn.requests = nil
		in.tracker.Forget(testXR)
		if _, err := runner.Run(t.Context(), step(in)); err != nil {
			t.Fatal(err)
		}
		for _, req := range fn.requests {
			out = append(out, req.GetMeta().GetTag())
		}
		return out
	}

	first := tags()
	if len(first) != 2 || first[0] == first[1] || len(first[0]) != 64 {
		t.Errorf("got tags %q, want two different SHA-256 sums", first)
	}
	in.remove("a")
	same := configMap("ns", "a", map[string]string{"z": "3", "y": "2", "x": "1"})
	same.SetResourceVersion("43")
	in.add(same)
	if diff := cmp.Diff(first, tags()); diff != "" {
		t.Errorf("the tags differ although the view doesn't:\n%s", diff)
	}
	in.remove("a")
	in.add(configMap("ns", "a", map[string]string{"x": "other"}))
	if got := tags(); got[0] != first[0] || got[1] == first[1] {
		t.Errorf("got tags %q after a change of a required object, before %q", got, first)
	}
	want := []fnv1.Capability{1, 2, 3, 4, 5}
	if diff := cmp.Diff(want, fn.requests[0].GetMeta().GetCapabilities()); diff != "" {
		t.Errorf("capabilities: -want +got:\n%s", diff)
	}
}

func TestRunStopsAtFatal(t *testing.T) {
	fn := &script{body: func(context.Context, *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
		return &fnv1.RunFunctionResponse{
			Requirements: resources(map[string]*fnv1.ResourceSelector{
				"a": byName("ns", "a"),
				"x": {Kind: "Incomplete"},
			}),
			Results: []*fnv1.Result{{Severity: fnv1.Severity_SEVERITY_FATAL, Message: "no a"}},
		}, nil
	}}
	in := newCluster()
	in.errs[kindConfigMap] = &watchError{}
	got, err := newRunner(t, fn).Run(t.Context(), step(in))
	if err != nil {
		t.Fatal(err)
	}
	want := dependency.Requirement{
		Step: "step", Name: "a", From: dependency.Resources,
		Reference: dependency.Reference{GVK: kindConfigMap, Namespace: "ns", Name: "a"},
	}
	if diff := cmp.Diff([]dependency.Requirement{want}, got.Requirements); diff != "" {
		t.Errorf("requirements: -want +got:\n%s", diff)
	}
	if got.Rounds != 1 || len(got.Response.GetResults()) != 1 {
		t.Errorf("got %d calls and %d results, want 1 of each", got.Rounds, len(got.Response.GetResults()))
	}
	in.tracker.Fail(testXR)
	wakes(t, in, configMap("ns", "a", nil))
}

func TestRunOfAFunctionThatNeverSettles(t *testing.T) {
	calls := 0
	fn := &script{body: func(context.Context, *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
		calls++
		return &fnv1.RunFunctionResponse{Requirements: resources(map[string]*fnv1.ResourceSelector{
			"same":   byName("ns", "a"),
			"differ": byName("ns", "object-"+strconv.Itoa(calls)),
		})}, nil
	}}
	in := newCluster()
	_, err := newRunner(t, fn).Run(t.Context(), step(in))
	const want = `step "step": function "f" does not settle on what it requires: in call 6 of 6 ` +
		`it asked for resources "differ" (v1 ConfigMap "ns/object-6"), and no longer for resources "differ" (v1 ConfigMap "ns/object-5")`
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	if calls != MaxCalls {
		t.Errorf("got %d calls, want %d", calls, MaxCalls)
	}
	in.tracker.Fail(testXR)
	wakes(t, in, configMap("ns", "object-6", nil))
}

func TestRunWithoutAWatch(t *testing.T) {
	secrets := &fnv1.ResourceSelector{ApiVersion: "v1", Kind: "Secret"}
	seeds := []dependency.Requirement{{
		Step: "step", Name: "secrets", From: dependency.Resources, Reference: dependency.Reference{GVK: kindSecret},
	}}
	cases := map[string]struct {
		reason    string
		starting  bool
		seeds     []dependency.Requirement
		bootstrap []dependency.Requirement
		asks      *fnv1.Requirements
		onSight   *fnv1.Requirements // of anything, instead
		calls     int
		fails     bool
	}{
		"Asked": {
			reason: "What a function asks for must be readable.",
			asks:   resources(map[string]*fnv1.ResourceSelector{"secrets": secrets, "a": byName("ns", "a")}),
			calls:  1,
			fails:  true,
		},
		"SeedStillAsked": {
			reason: "A seed that can't be read is left out, and its absence is an error once it is asked for.",
			seeds:  seeds,
			asks:   resources(map[string]*fnv1.ResourceSelector{"secrets": secrets, "a": byName("ns", "a")}),
			calls:  1,
			fails:  true,
		},
		"SeedNoLongerAsked": {
			reason: "A seed that can't be read is no obstacle to a function that doesn't want it.",
			seeds:  seeds,
			calls:  1,
		},
		"AskedForAStaleSeed": {
			reason: "What is asked for only in view of a stale seed need not be readable.",
			seeds: []dependency.Requirement{{
				Step: "step", Name: "stale", From: dependency.Resources, Reference: dependency.Reference{GVK: kindConfigMap},
			}},
			onSight: resources(map[string]*fnv1.ResourceSelector{"secrets": secrets}),
			calls:   2,
		},
		"SeedStarting": {
			reason:   "A seed whose watch is starting is worth waiting for.",
			starting: true,
			seeds:    seeds,
			fails:    true,
		},
		"Bootstrap": {
			reason:    "What the Composition declares must be readable.",
			bootstrap: seeds,
			fails:     true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in := newCluster()
			in.errs[kindSecret] = &watchError{starting: tc.starting}
			in.tracker.Track(testXR, nil, tc.seeds)
			fn := &script{body: func(ctx context.Context, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
				if len(req.GetRequiredResources()) > 0 && tc.onSight != nil {
					return asks(tc.onSight)(ctx, req)
				}
				return asks(tc.asks)(ctx, req)
			}}
			s := step(in)
			s.Bootstrap = tc.bootstrap
			_, err := newRunner(t, fn).Run(t.Context(), s)

			watch := &watchError{}
			if errors.As(err, &watch) != tc.fails {
				t.Errorf("%s\ngot error %v, want a watch's: %t", tc.reason, err, tc.fails)
			}
			if tc.fails && err.Error() != `step "step": requirement "secrets": cannot watch it` {
				t.Errorf("%s\ngot error %v", tc.reason, err)
			}
			if len(fn.requests) != tc.calls {
				t.Errorf("%s\ngot %d calls, want %d", tc.reason, len(fn.requests), tc.calls)
			}
			if tc.fails {
				in.tracker.Fail(testXR)
				wakes(t, in, object("v1", "Secret", "ns", "any"))
			}
			if _, ok := tc.asks.GetResources()["a"]; ok {
				wakes(t, in, configMap("ns", "a", nil))
			}
		})
	}
}

// wakes the test's XR when the object changes.
func wakes(t *testing.T, in *cluster, obj *unstructured.Unstructured) {
	t.Helper()
	if !slices.Contains(in.tracker.Dependants(nil, obj.GroupVersionKind(), obj), testXR) {
		t.Errorf("the XR does not depend on %s %q", obj.GetKind(), obj.GetName())
	}
}

// A function that asks for more the more it sees, as all sensible ones do, ends
// up seeing exactly what it asks for, whatever it asked for in earlier runs, and
// the run after that takes one call.
func TestRunOfMonotoneFunctions(t *testing.T) {
	names := []string{"a", "b", "c"}
	asksFor := rapid.SliceOfNDistinct(rapid.SampledFrom(names), 0, len(names), rapid.ID)
	fn := &script{}
	runner := newRunner(t, fn)
	rapid.Check(t, func(rt *rapid.T) {
		in := newCluster()
		for range rapid.IntRange(1, 4).Draw(rt, "versions of the function") {
			always := asksFor.Draw(rt, "always")
			onSight := map[string][]string{}
			for _, name := range names {
				onSight[name] = asksFor.Draw(rt, "on sight of "+name)
			}
			fn.body = func(_ context.Context, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
				selectors := map[string]*fnv1.ResourceSelector{}
				for _, name := range always {
					selectors[name] = byName("ns", name)
				}
				for seen := range req.GetRequiredResources() {
					for _, name := range onSight[seen] {
						selectors[name] = byName("ns", name)
					}
				}
				return &fnv1.RunFunctionResponse{Requirements: resources(selectors)}, nil
			}
			for run := range 2 {
				got, err := runner.Run(t.Context(), step(in))
				if err != nil {
					rt.Fatal(err)
				}
				in.tracker.Track(testXR, nil, got.Requirements)
				if run > 0 && got.Rounds != 1 {
					rt.Errorf("a seeded run took %d calls, want 1", got.Rounds)
				}
				asked := slices.Sorted(maps.Keys(got.Response.GetRequirements().GetResources()))
				saw := slices.Sorted(maps.Keys(fn.requests[len(fn.requests)-1].GetRequiredResources()))
				var required []string
				for _, r := range got.Requirements {
					required = append(required, r.Name)
				}
				if !slices.Equal(asked, saw) || !slices.Equal(asked, required) {
					rt.Errorf("the function asked for %v, saw %v, and is said to require %v", asked, saw, required)
				}
			}
		}
	})
}

func TestRunRefusesRequirements(t *testing.T) {
	cases := map[string]struct {
		selector *fnv1.ResourceSelector
		want     string
	}{
		"NoAPIVersion":      {selector: &fnv1.ResourceSelector{Kind: "ConfigMap"}, want: `api_version is "" and kind is "ConfigMap": the function must set both`},
		"NoKind":            {selector: &fnv1.ResourceSelector{ApiVersion: "v1"}, want: `api_version is "v1" and kind is "": the function must set both`},
		"Nothing":           {selector: &fnv1.ResourceSelector{}, want: `api_version is "" and kind is "": the function must set both`},
		"InvalidAPIVersion": {selector: &fnv1.ResourceSelector{ApiVersion: "a/b/c", Kind: "X"}, want: `api_version "a/b/c" is neither a version nor a group and a version, as in apps/v1`},
		"NoVersion":         {selector: &fnv1.ResourceSelector{ApiVersion: "apps/", Kind: "X"}, want: `api_version "apps/" is neither a version nor a group and a version, as in apps/v1`},
		"EmptyName":         {selector: byName("ns", ""), want: `match_name is empty: set it, or leave it out to match by labels or everything`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in := newCluster()
			fn := &script{body: asks(resources(map[string]*fnv1.ResourceSelector{"bad": tc.selector, "good": byName("ns", "a")}))}
			_, err := newRunner(t, fn).Run(t.Context(), step(in))
			want := `step "step": function "f": requirement "bad" in resources: ` + tc.want
			if err == nil || err.Error() != want {
				t.Errorf("got  %v\nwant %s", err, want)
			}
			in.tracker.Fail(testXR)
			wakes(t, in, configMap("ns", "a", nil))
		})
	}
	for name, bad := range map[string]dependency.Requirement{
		"Bootstrap":       {Name: "bad"},
		"BootstrapSchema": {Name: "bad", Subject: schema.GroupVersionKind{Kind: "Widget"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := step(newCluster())
			s.Bootstrap = []dependency.Requirement{bad}
			_, err := newRunner(t, &script{body: answer}).Run(t.Context(), s)
			const want = `step "step": requirement "bad": it names no apiVersion or no kind: the Composition must set both`
			if err == nil || err.Error() != want {
				t.Errorf("got  %v\nwant %s", err, want)
			}
		})
	}
}

func TestRunRefusesResponses(t *testing.T) {
	desired := func(name string, content string) *fnv1.RunFunctionResponse {
		r := &fnv1.Resource{Resource: &structpb.Struct{}}
		if err := r.Resource.UnmarshalJSON([]byte(content)); err != nil {
			t.Fatal(err)
		}
		return &fnv1.RunFunctionResponse{Desired: &fnv1.State{Resources: map[string]*fnv1.Resource{name: r}}}
	}
	notANumber := desired("x", `{"apiVersion":"v1","kind":"ConfigMap","data":[1]}`)
	notANumber.Desired.Resources["x"].Resource.Fields["data"].GetListValue().Values[0] = structpb.NewNumberValue(math.NaN())
	deep := strings.Repeat(`{"a":`, maxDepth+1) + "1" + strings.Repeat("}", maxDepth+1)

	cases := map[string]struct {
		resp *fnv1.RunFunctionResponse
		want string // empty if the response is fine
	}{
		"Empty":      {resp: &fnv1.RunFunctionResponse{}},
		"OtherTag":   {resp: &fnv1.RunFunctionResponse{Meta: &fnv1.ResponseMeta{Tag: "other"}}, want: "its tag is that of another request"},
		"InvalidTTL": {resp: &fnv1.RunFunctionResponse{Meta: &fnv1.ResponseMeta{Ttl: &durationpb.Duration{Seconds: 1, Nanos: -1}}}, want: "its TTL is no duration"},
		"Complete":   {resp: desired("x", `{"apiVersion":"v1","kind":"ConfigMap","a":null}`)},
		"NoName":     {resp: desired("", `{"apiVersion":"v1","kind":"ConfigMap"}`), want: `desired resource "": its name is empty`},
		"NoKind":     {resp: desired("x", `{"apiVersion":"v1"}`), want: `desired resource "x": it has no kind`},
		"NoObject": {
			resp: &fnv1.RunFunctionResponse{Desired: &fnv1.State{Resources: map[string]*fnv1.Resource{"x": {Ready: fnv1.Ready_READY_TRUE}}}},
			want: `desired resource "x": it has no apiVersion`,
		},
		"NotANumber": {resp: notANumber, want: `desired resource "x": field "data": it holds a number that is not finite`},
		"TooDeep":    {resp: desired("x", `{"apiVersion":"v1","kind":"ConfigMap","data":`+deep+`}`), want: `desired resource "x": field "data": it is nested more than 1000 deep`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			fn := &script{body: func(context.Context, *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
				return tc.resp, nil
			}}
			_, err := newRunner(t, fn).Run(t.Context(), step(newCluster()))
			switch prefix := `step "step": response of function "f": `; {
			case tc.want == "" && err != nil:
				t.Errorf("got %v, want no error", err)
			case tc.want != "" && (err == nil || !strings.HasPrefix(err.Error(), prefix+tc.want)):
				t.Errorf("got  %v\nwant %s%s", err, prefix, tc.want)
			}
		})
	}
}

func TestRunTTL(t *testing.T) {
	cases := map[string]struct {
		reason     string
		stated     *durationpb.Duration
		defaultTTL time.Duration
		asReturned bool
		want       time.Duration
	}{
		"None":           {reason: "No opinion.", defaultTTL: defaultTTL, want: defaultTTL},
		"SDK":            {reason: "What the SDKs return by themselves is no opinion either.", stated: durationpb.New(time.Minute), defaultTTL: defaultTTL, want: defaultTTL},
		"SDKAsReturned":  {reason: "The Function opts out.", stated: durationpb.New(time.Minute), defaultTTL: defaultTTL, asReturned: true, want: time.Minute},
		"SDKForAll":      {reason: "The operator opts out.", stated: durationpb.New(time.Minute), defaultTTL: time.Minute, want: time.Minute},
		"Chosen":         {reason: "Any other TTL was chosen.", stated: durationpb.New(61 * time.Second), defaultTTL: defaultTTL, want: 61 * time.Second},
		"ChosenFraction": {reason: "So was this one.", stated: durationpb.New(time.Minute + 1), defaultTTL: defaultTTL, want: time.Minute + 1},
		"Zero":           {reason: "Never to be reused.", stated: durationpb.New(0), defaultTTL: defaultTTL},
		"Negative":       {reason: "Already over.", stated: durationpb.New(-time.Second), defaultTTL: defaultTTL},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			i := newInstalled()
			if tc.asReturned {
				i.add("f", map[string]string{pkgv1.AnnotationResponseTTL: pkgv1.ResponseTTLAsReturned})
			}
			runner := newRunner(t, &script{body: func(context.Context, *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
				return &fnv1.RunFunctionResponse{Meta: &fnv1.ResponseMeta{Ttl: tc.stated}}, nil
			}})
			runner.config.DefaultTTL, runner.config.Functions = tc.defaultTTL, i
			got, err := runner.Run(t.Context(), step(newCluster()))
			if err != nil {
				t.Fatal(err)
			}
			var ttl time.Duration
			if !got.Expires.IsZero() {
				ttl = got.Expires.Sub(runner.config.Clock.Now())
			}
			if ttl != tc.want {
				t.Errorf("%s\ngot %s, want %s", tc.reason, ttl, tc.want)
			}
		})
	}
}

func TestRunFailsWithItsCaller(t *testing.T) {
	down := &CallError{Function: "f", Endpoint: "dns:///f.ns:9443", Cause: "connection refused"}
	fn := &script{body: func(context.Context, *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) { return nil, down }}
	_, err := newRunner(t, fn).Run(t.Context(), step(newCluster()))
	if !errors.Is(err, down) || !strings.HasPrefix(err.Error(), `step "step": function "f" at dns:///f.ns:9443: `) {
		t.Errorf("got %v, want the caller's error with the step's name", err)
	}
}
