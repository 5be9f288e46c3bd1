// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package composer

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	v1 "github.com/crosswatch-io/crosswatch/api/apiextensions/v1"
	commonv1 "github.com/crosswatch-io/crosswatch/api/common/v1"
	fnv1 "github.com/crosswatch-io/crosswatch/api/fn/v1"
	"github.com/crosswatch-io/crosswatch/internal/composer/fakeapi"
	"github.com/crosswatch-io/crosswatch/internal/engine"
	"github.com/crosswatch-io/crosswatch/internal/xr"
)

func TestComposeCreatesWhatIsDesired(t *testing.T) {
	w := newWorld(v1.ScopeNamespaced, "make")
	w.desires("make", map[string]object{"db": thing("", object{"size": 3}), "web": thing("front", object{"port": 80})})

	out, err := w.compose(t)
	if err != nil {
		t.Fatal(err)
	}
	derived := xr.ComposedName(w.app().GetUID(), "db", appName+"-")
	want := []string{"apply apps/" + appName, "apply things/" + derived, "apply things/front"}
	if diff := cmp.Diff(want, w.writes()); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	before(t, w.recorded, "run make", "depend example.org/v1 Thing")

	db := w.Get(things, namespace, derived)
	if got := nested(db, "spec", "size"); got != int64(3) {
		t.Errorf("the size is %v (%T), want the integer 3", got, got)
	}
	if got := db.GetLabels()[v1.LabelComposite]; got != appName {
		t.Errorf("composite label %q", got)
	}
	if got := db.GetAnnotations()[v1.AnnotationCompositionResourceName]; got != "db" {
		t.Errorf("resource name annotation %q", got)
	}
	if owner := metav1.GetControllerOf(db); owner == nil || owner.UID != w.app().GetUID() {
		t.Errorf("controller %v", owner)
	}
	refs := []xr.Ref{
		{APIVersion: "example.org/v1", Kind: "Thing", Name: "front"},
		{APIVersion: "example.org/v1", Kind: "Thing", Name: derived},
	}
	slices.SortFunc(refs, func(a, b xr.Ref) int { return strings.Compare(a.Name, b.Name) })
	if diff := cmp.Diff(refs, w.app().ResourceRefs()); diff != "" {
		t.Errorf("references (-want +got):\n%s", diff)
	}
	if len(out.Composed) != 2 || !out.Complete || !out.Resources[0].Ready {
		t.Errorf("output %+v", out)
	}
}

// E3: nothing changed, nothing is written.
func TestComposeE3WritesNothingWhenNothingChanged(t *testing.T) {
	w := newWorld(v1.ScopeNamespaced, "make")
	resources := map[string]object{}
	for i := range 20 {
		resources[fmt.Sprintf("r%d", i)] = thing("", object{"n": i})
	}
	w.desires("make", resources)
	mustCompose(t, w)
	w.writes()
	for range 50 {
		mustCompose(t, w)
	}
	w.restart()
	mustCompose(t, w)
	if got := w.writes(); len(got) > 0 {
		t.Errorf("unexpected writes: %q", got)
	}

	one := w.app().ResourceRefs()[7].Name
	w.Edit(things, w.Get(things, namespace, one), "someone", func(o object) { o["spec"].(object)["n"] = int64(99) })
	mustCompose(t, w)
	if diff := cmp.Diff([]string{"apply things/" + one}, w.writes()); diff != "" {
		t.Errorf("drift is to be corrected (-want +got):\n%s", diff)
	}
	mustCompose(t, w)
	if got := w.writes(); len(got) > 0 {
		t.Errorf("unexpected writes after the correction: %q", got)
	}
}

func TestComposeShowsWhatExists(t *testing.T) {
	w := newWorld(v1.ScopeNamespaced, "first", "second")
	w.desires("first", map[string]object{"db": thing("", object{"size": 3})})
	var seen *fnv1.RunFunctionRequest
	w.respond["second"] = func(req *fnv1.RunFunctionRequest) *fnv1.RunFunctionResponse {
		seen = req
		return &fnv1.RunFunctionResponse{Desired: req.GetDesired()}
	}
	mustCompose(t, w)
	if len(seen.GetObserved().GetResources()) != 0 || len(seen.GetDesired().GetResources()) != 1 {
		t.Errorf("the first run observes %v and desires %v", seen.GetObserved().GetResources(), seen.GetDesired().GetResources())
	}
	mustCompose(t, w)
	db := seen.GetObserved().GetResources()["db"].GetResource().AsMap()
	metadata, _ := db["metadata"].(object)
	if metadata["uid"] == nil || metadata["resourceVersion"] != nil || metadata["managedFields"] != nil {
		t.Errorf("observed metadata %v", metadata)
	}
}

func TestComposeCollectsWhatIsNoLongerDesired(t *testing.T) {
	w := newWorld(v1.ScopeNamespaced, "make")
	w.desires("make", map[string]object{"a": thing("a", object{}), "b": thing("b", object{})})
	mustCompose(t, w)
	w.writes()

	w.desires("make", map[string]object{"a": thing("a", object{})})
	out := mustCompose(t, w)
	if diff := cmp.Diff([]string{"delete things/b"}, w.writes()); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	if len(w.app().ResourceRefs()) != 2 || len(out.Composed) != 2 {
		t.Errorf("the reference goes before its object: %v, %v", w.app().ResourceRefs(), out.Composed)
	}
	mustCompose(t, w)
	if got := w.writes(); len(got) > 0 {
		t.Errorf("unexpected writes while it is being deleted: %q", got)
	}

	w.Remove(things, namespace, "b")
	mustCompose(t, w)
	if diff := cmp.Diff([]string{"apply apps/" + appName}, w.writes()); diff != "" {
		t.Errorf("writes once it is gone (-want +got):\n%s", diff)
	}
	if len(w.app().ResourceRefs()) != 1 {
		t.Errorf("references %v", w.app().ResourceRefs())
	}
}

func TestComposeCollectsOnlyItsOwn(t *testing.T) {
	w := newWorld(v1.ScopeNamespaced, "make")
	w.desires("make", map[string]object{"a": thing("a", object{}), "b": thing("b", object{})})
	mustCompose(t, w)
	w.Edit(things, w.Get(things, namespace, "a"), "someone", func(o object) { delete(o["metadata"].(object), "ownerReferences") })
	w.Edit(things, w.Get(things, namespace, "b"), "someone", func(o object) {
		o["metadata"].(object)["ownerReferences"] = []any{owner("Other", "other", "other-uid")}
	})
	w.writes()

	w.desires("make", map[string]object{})
	mustCompose(t, w)
	if diff := cmp.Diff([]string{"apply apps/" + appName}, w.writes()); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
}

func TestComposeReplacesWhatChangesItsKind(t *testing.T) {
	w := newWorld(v1.ScopeCluster, "make")
	w.desires("make", map[string]object{"a": inNamespace(thing("one", object{}))})
	mustCompose(t, w)
	w.writes()

	w.desires("make", map[string]object{"a": {"apiVersion": "example.org/v1", "kind": "Cluster", "metadata": object{"name": "two"}}})
	mustCompose(t, w)
	want := []string{"delete things/one", "apply apps/" + appName, "apply clusters/two"}
	if diff := cmp.Diff(want, w.writes()); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
}

func TestComposeRemovesFields(t *testing.T) {
	w := newWorld(v1.ScopeNamespaced, "make")
	w.desires("make", map[string]object{"a": thing("a", object{"keep": 1, "drop": 2})})
	mustCompose(t, w)
	w.restart()
	w.desires("make", map[string]object{"a": thing("a", object{"keep": 1})})
	mustCompose(t, w)
	if diff := cmp.Diff(object{"keep": int64(1)}, nested(w.Get(things, namespace, "a"), "spec")); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
}

// E1: all is attempted, and the cause is named, whatever follows from it.
func TestComposeE1AttemptsEverything(t *testing.T) {
	w := newWorld(v1.ScopeNamespaced, "make")
	w.desires("make", map[string]object{
		"a-inside": thing("inside", object{}), "b-space": thing("space", object{}), "c-apart": thing("apart", object{}),
	})
	invalid := apierrors.NewInvalid(schema.GroupKind{Kind: "Thing"}, "space", nil)
	w.Refuse = func(write fakeapi.Write, _ *unstructured.Unstructured) error {
		switch write.Name {
		case "space":
			return invalid
		case "inside":
			return apierrors.NewNotFound(schema.GroupResource{Resource: "spaces"}, "space")
		}
		return nil
	}

	out, err := w.compose(t)
	contains(t, err.Error(), `resource "a-inside"`)
	contains(t, err.Error(), `resource "b-space"`)
	if !apierrors.IsInvalid(out.Resources[1].Err) || out.Resources[1].Ready {
		t.Errorf("resource %+v", out.Resources[1])
	}
	if len(out.Results) != 1 || out.Results[0].Severity != Warning {
		t.Errorf("results %+v", out.Results)
	}
	if w.Get(things, namespace, "apart") == nil {
		t.Error("what nothing is wrong with was not applied")
	}
	_, again := w.compose(t)
	if diff := cmp.Diff(err.Error(), again.Error()); diff != "" {
		t.Errorf("the error's text varies:\n%s", diff)
	}
}

// An API server lists what is wrong in another order each time; events and
// conditions must not follow it.
func TestComposeFaultsAreStable(t *testing.T) {
	w := newWorld(v1.ScopeNamespaced, "make")
	w.desires("make", map[string]object{"old": thing("old", object{})})
	mustCompose(t, w)
	w.desires("make", map[string]object{"a": thing("a", object{})})

	fields := []string{"x", "y"}
	w.Refuse = func(fakeapi.Write, *unstructured.Unstructured) error {
		var faults field.ErrorList
		for _, f := range fields {
			faults = append(faults, field.Required(field.NewPath("spec", f), ""))
		}
		return apierrors.NewInvalid(schema.GroupKind{Kind: "Thing"}, "a", faults)
	}
	_, refsErr := w.compose(t)
	slices.Reverse(fields)
	_, again := w.compose(t)
	if !apierrors.IsInvalid(refsErr) || refsErr.Error() != again.Error() {
		t.Errorf("the error's text varies: %q, %q", refsErr, again)
	}

	refuse := w.Refuse
	w.Refuse = func(write fakeapi.Write, obj *unstructured.Unstructured) error {
		if write.Resource == apps.Resource {
			return nil
		}
		return refuse(write, obj)
	}
	out, err := w.compose(t)
	slices.Reverse(fields)
	outAgain, again := w.compose(t)
	contains(t, err.Error(), "cannot delete")
	contains(t, err.Error(), "cannot apply")
	if err.Error() != again.Error() {
		t.Errorf("the error's text varies: %q, %q", err, again)
	}
	if diff := cmp.Diff(out.Results, outAgain.Results); diff != "" || len(out.Results) != 1 {
		t.Errorf("results %v vary:\n%s", out.Results, diff)
	}
}

// A user can write references that name nothing.
func TestComposeDropsReferencesToNothing(t *testing.T) {
	for name, desired := range map[string]map[string]object{
		"SomeDesired": {"a": thing("a", object{})}, "NoneDesired": {},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(v1.ScopeNamespaced, "make")
			w.desires("make", desired)
			w.Edit(apps, w.bareApp(), "user", func(o object) {
				o["spec"].(object)["crossplane"] = object{"resourceRefs": []any{
					object{"apiVersion": "example.org/v1", "kind": "Thing"},
					object{"apiVersion": "example.org/v1", "kind": "", "name": "x"},
					object{"apiVersion": "a/b/c", "kind": "Thing", "name": "x"},
					object{"apiVersion": "", "kind": "Thing", "name": "x"},
				}}
			})
			for range 3 {
				mustCompose(t, w)
			}
			for _, recorded := range w.recorded {
				if strings.HasPrefix(recorded, "depend ") && recorded != `depend example.org/v1 Thing "team/a"` {
					t.Errorf("recorded %s", recorded)
				}
			}
			if got := w.app().ResourceRefs(); len(got) != len(desired) {
				t.Errorf("references %v", got)
			}
			w.writes()
			mustCompose(t, w)
			if got := w.writes(); len(got) > 0 {
				t.Errorf("unexpected writes: %q", got)
			}
		})
	}
}

func TestComposeRefuses(t *testing.T) {
	cases := map[string]struct {
		reason string
		scope  v1.Scope
		desire map[string]object
		names  string
	}{
		"NoKind": {
			reason: "Nothing can be applied that has no kind.",
			desire: map[string]object{"broken": {"apiVersion": "v1"}, "fine": thing("fine", object{})},
			names:  `resource "broken"`,
		},
		"InvalidName": {
			reason: "A name that is no path segment can't be applied to.",
			desire: map[string]object{"broken": thing("a/b", object{}), "fine": thing("fine", object{})},
			names:  `resource "broken"`,
		},
		"SameObjectTwice": {
			reason: "Two intents for one object would undo each other for ever.",
			desire: map[string]object{"a": thing("same", object{}), "b": thing("same", object{})},
			names:  `resource "b"`,
		},
		"SameObjectOnceAdmitted": {
			reason: "What has no namespace is not told apart by one.",
			scope:  v1.ScopeCluster,
			desire: map[string]object{
				"a": {"apiVersion": "example.org/v1", "kind": "Cluster", "metadata": object{"name": "same", "namespace": "odd"}},
				"b": {"apiVersion": "example.org/v1", "kind": "Cluster", "metadata": object{"name": "same"}},
			},
			names: `resource "b": it is the same example.org/v1 Cluster "same" as resource "a"`,
		},
		"OtherController": {
			reason: "An object has one controller.",
			desire: map[string]object{"broken": {
				"apiVersion": "example.org/v1", "kind": "Thing",
				"metadata": object{"ownerReferences": []any{owner("Other", "other", "other-uid")}},
			}},
			names: `controller`,
		},
		"S6ClusterScopedFromNamespaced": {
			reason: "Owner references don't reach from a cluster-scoped object to a namespaced one.",
			desire: map[string]object{
				"broken": {"apiVersion": "example.org/v1", "kind": "Cluster"}, "fine": thing("fine", object{}),
			},
			names: `resource "broken"`,
		},
		"NoNamespace": {
			reason: "There is no namespace to guess for a cluster-scoped XR.",
			scope:  v1.ScopeCluster,
			desire: map[string]object{"broken": thing("broken", object{})},
			names:  `no namespace`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			scope := tc.scope
			if scope == "" {
				scope = v1.ScopeNamespaced
			}
			w := newWorld(scope, "make")
			w.desires("make", tc.desire)
			out, err := w.compose(t)
			if err == nil {
				t.Fatalf("%s There was no error.", tc.reason)
			}
			contains(t, err.Error(), tc.names)
			if got := w.writes(); len(got) > 0 || out.Complete {
				t.Errorf("%s Writes: %q", tc.reason, got)
			}
		})
	}
}

func TestComposeNeverAdopts(t *testing.T) {
	w := newWorld(v1.ScopeNamespaced, "make")
	theirs := &unstructured.Unstructured{Object: thing("theirs", object{})}
	theirs.SetNamespace(namespace)
	w.Edit(things, theirs, "someone", func(o object) {
		o["metadata"].(object)["ownerReferences"] = []any{owner("Other", "other", "other-uid")}
	})
	w.desires("make", map[string]object{"a": thing("theirs", object{"ours": true}), "b": thing("b", object{})})

	_, err := w.compose(t)
	contains(t, err.Error(), `controlled by Other "other"`)
	if got := nested(w.Get(things, namespace, "theirs"), "spec"); got != nil {
		t.Errorf("spec %v", got)
	}
	if w.Get(things, namespace, "b") == nil {
		t.Error("the other resource was not applied")
	}
}

func TestComposeOverridesNamespaces(t *testing.T) {
	w := newWorld(v1.ScopeNamespaced, "make")
	elsewhere := thing("a", object{})
	elsewhere["metadata"].(object)["namespace"] = "elsewhere"
	w.desires("make", map[string]object{"a": elsewhere})
	out := mustCompose(t, w)
	if len(out.Results) != 1 || out.Results[0].Reason != ReasonNamespaceOverride {
		t.Errorf("results %+v", out.Results)
	}
	if w.Get(things, namespace, "a") == nil {
		t.Error("the resource is not in the XR's namespace")
	}
}

func TestComposeDropsTheNamespaceOfAClusterScopedObject(t *testing.T) {
	w := newWorld(v1.ScopeCluster, "make")
	w.desires("make", map[string]object{"a": {
		"apiVersion": "example.org/v1", "kind": "Cluster", "metadata": object{"name": "one", "namespace": "odd"},
	}})
	out := mustCompose(t, w)
	if ref := out.Composed[0]; ref.Namespace != "" {
		t.Errorf("reference %v", ref)
	}
	before(t, w.recorded, `depend example.org/v1 Cluster "odd/one"`, `depend example.org/v1 Cluster "one"`)
}

func TestComposeFatal(t *testing.T) {
	w := newWorld(v1.ScopeNamespaced, "first", "second")
	w.desires("first", map[string]object{"a": thing("a", object{})})
	fatal := func(*fnv1.RunFunctionRequest) *fnv1.RunFunctionResponse {
		return &fnv1.RunFunctionResponse{
			Conditions: []*fnv1.Condition{
				{Type: "Placed", Status: fnv1.Status_STATUS_CONDITION_FALSE, Reason: "NoRoom"},
				{Type: commonv1.TypeReady, Status: fnv1.Status_STATUS_CONDITION_TRUE},
			},
			Results: []*fnv1.Result{
				{Severity: fnv1.Severity_SEVERITY_NORMAL, Message: "looked", Reason: ptr.To("Looked")},
				{Severity: fnv1.Severity_SEVERITY_FATAL, Message: "no cluster is ready"},
			},
		}
	}
	w.respond["second"] = fatal

	out, err := w.compose(t)
	var fatalErr *FatalError
	if !errors.As(err, &fatalErr) || fatalErr.Step != "second" {
		t.Fatalf("error %v", err)
	}
	contains(t, err.Error(), "no cluster is ready")
	if got := w.writes(); len(got) > 0 {
		t.Errorf("writes %q", got)
	}
	want := []commonv1.Condition{commonv1.False("Placed", "NoRoom", "")}
	if diff := cmp.Diff(want, out.Conditions); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
	if len(out.Results) != 2 || out.Results[0].Reason != ReasonInvalidCondition || out.Results[1].Reason != "Looked" {
		t.Errorf("results %+v", out.Results)
	}
}

func TestComposeTakesTheCompositesState(t *testing.T) {
	w := newWorld(v1.ScopeNamespaced, "make")
	w.respond["make"] = func(*fnv1.RunFunctionRequest) *fnv1.RunFunctionResponse {
		return &fnv1.RunFunctionResponse{Desired: &fnv1.State{Composite: &fnv1.Resource{
			Ready: fnv1.Ready_READY_FALSE,
			Resource: toStruct(object{
				"spec":   object{"ignored": true},
				"status": object{"replicas": 2, "conditions": []any{object{"type": "Synced"}}},
			}),
		}}}
	}
	out := mustCompose(t, w)
	if diff := cmp.Diff(object{"replicas": int64(2)}, out.Status); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	if out.Ready == nil || *out.Ready {
		t.Errorf("ready %v", out.Ready)
	}
}

func TestComposeCredentials(t *testing.T) {
	w := newWorld(v1.ScopeNamespaced, "make")
	w.pipeline[0].Credentials = []v1.FunctionCredentials{{
		Name: "cloud", Source: v1.CredentialsSourceSecret, SecretRef: &v1.SecretReference{Namespace: "keys", Name: "cloud-key"},
	}}
	var got map[string]*fnv1.Credentials
	w.respond["make"] = func(req *fnv1.RunFunctionRequest) *fnv1.RunFunctionResponse {
		got = req.GetCredentials()
		return desiring(nil)
	}

	out, err := w.compose(t)
	for _, part := range []string{`step "make"`, `credentials "cloud"`, `"keys/cloud-key"`} {
		contains(t, err.Error(), part)
	}
	if len(out.Required) != 1 {
		t.Errorf("what is missing must be required all the same: %v", out.Required)
	}

	secret := &unstructured.Unstructured{Object: object{"apiVersion": "v1", "kind": "Secret"}}
	secret.SetNamespace("keys")
	secret.SetName("cloud-key")
	w.Edit(secrets, secret, "someone", func(o object) { o["data"] = object{"token": "c2VjcmV0"} })
	mustCompose(t, w)
	if token := got["cloud"].GetCredentialData().GetData()["token"]; string(token) != "secret" {
		t.Errorf("token %q", token)
	}
	before(t, w.recorded, `require v1 Secret "keys/cloud-key"`, "run make")
}

func TestComposeWithoutAWatch(t *testing.T) {
	cases := map[string]struct {
		reason  string
		state   engine.State
		attempt bool
	}{
		"Starting":  {reason: "The watch is about to wake the XR.", state: engine.Starting},
		"Forbidden": {reason: "A kind costs its own resources only.", state: engine.Forbidden, attempt: true},
		"NotFound":  {reason: "What installs a kind may be among what is desired.", state: engine.NotFound, attempt: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(v1.ScopeNamespaced, "make")
			w.watches["Other"] = tc.state
			w.desires("make", map[string]object{
				"a": {"apiVersion": "example.org/v1", "kind": "Other"}, "b": thing("b", object{}),
			})
			_, err := w.compose(t)
			var watch *engine.WatchError
			if !errors.As(err, &watch) {
				t.Fatalf("%s Error: %v", tc.reason, err)
			}
			if got := w.Get(things, namespace, "b") != nil; got != tc.attempt {
				t.Errorf("%s Applied: %v", tc.reason, got)
			}
			for _, ref := range w.app().ResourceRefs() {
				if ref.Kind == "Other" {
					t.Errorf("a reference to what can't exist keeps the XR from being observed: %v", ref)
				}
			}
		})
	}
}

func TestComposeExpiresWithTheFirstOfItsAnswers(t *testing.T) {
	r := &run{}
	now := time.Now()
	for _, expires := range []time.Time{{}, now.Add(time.Hour), now.Add(time.Minute), {}, now.Add(2 * time.Minute)} {
		r.takeExpiry(answerUntil(expires))
	}
	if want := now.Add(time.Minute); !r.out.Expires.Equal(want) {
		t.Errorf("it expires at %s, want %s", r.out.Expires, want)
	}
}

// K1: names don't change with attempts, and are valid whatever the key.
func TestComposeK1NamesAreStable(t *testing.T) {
	w := newWorld(v1.ScopeNamespaced, "make")
	keys := []string{"Capitals", "dots.and.dots", "bang!", strings.Repeat("long", 50)}
	resources := map[string]object{}
	for _, key := range keys {
		resources[key] = thing("", object{})
	}
	w.desires("make", resources)
	w.Refuse = func(write fakeapi.Write, _ *unstructured.Unstructured) error {
		if write.Resource == things.Resource {
			return apierrors.NewInternalError(errors.New("not now"))
		}
		return nil
	}
	_, err := w.compose(t)
	refs := w.app().ResourceRefs()
	_, again := w.compose(t)
	if err == nil || again == nil || len(refs) != len(keys) {
		t.Fatalf("errors %v, %v; references %v", err, again, refs)
	}
	if diff := cmp.Diff(refs, w.app().ResourceRefs()); diff != "" {
		t.Errorf("references changed:\n%s", diff)
	}
}

func mustCompose(t *testing.T, w *world) Output {
	t.Helper()
	out, err := w.compose(t)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func owner(kind, name, uid string) object {
	return object{"apiVersion": "example.org/v1", "kind": kind, "name": name, "uid": uid, "controller": true}
}

func inNamespace(o object) object {
	o["metadata"].(object)["namespace"] = namespace
	return o
}
