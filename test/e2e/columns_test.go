// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/crosswatch-io/crosswatch/api/apiextensions/v1"
	fnv1 "github.com/crosswatch-io/crosswatch/api/fn/v1"
	watchv1alpha1 "github.com/crosswatch-io/crosswatch/api/watch/v1alpha1"
	"github.com/crosswatch-io/crosswatch/test/functions/respond"
)

// tally is what a row says, counted by whoever made the XRs.
type tally struct {
	xrs, composed, required int
	kinds                   map[string]bool // that can be watched
	missing                 map[string]bool // that can't
	converged               string
}

func (n tally) row(name string) []string {
	numbers := fmt.Sprint(n.xrs, n.composed+n.required, len(n.kinds))
	wide := fmt.Sprint(n.composed, n.required, len(n.missing))
	return slices.Concat([]string{name}, strings.Fields(numbers), []string{n.converged}, strings.Fields(wide))
}

// add counts an XR of the pipeline that reader and relay are, by what its spec says.
func (n *tally) add(spec map[string]any) {
	n.xrs++
	n.composed += 2
	n.kinds["Gadget"] = true
	for _, asked := range []string{"settings", "color"} {
		if spec[asked] != nil {
			n.required++
			n.kinds["ConfigMap"] = true
		}
	}
}

// Every number that kubectl prints is what the test counts of what it made.
func TestEveryColumnShowsTheTruth(t *testing.T) {
	w := newWorld(t)
	w.operate()
	w.function("reader", reader)
	w.function("relay", relay)
	w.function("seeker", func(req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
		rsp := respond.To(req)
		respond.Ready(rsp, fnv1.Ready_READY_TRUE)
		if spec, _ := respond.Observed(req)["spec"].(map[string]any); spec["seek"] != true {
			return rsp, nil
		}
		respond.Require(rsp, "lost", respond.Selector{APIVersion: "late.crosswatch.io/v1", Kind: "Lost", Namespace: w.namespace, Name: "lost"})
		return rsp, nil
	})

	rows := map[string]tally{}
	kinds := w.defineAll("Tally7", "Tally2", "Tally0", "Seeking")
	for k, many := range []int{7, 2, 0} {
		kind := kinds[k]
		w.compose(kind, step("reader", nil), step("relay", nil))
		n := tally{kinds: map[string]bool{}, converged: "True"}
		for i := range many {
			spec := map[string]any{}
			if i%2 == 0 {
				spec["settings"] = "settings"
			}
			if i%3 == 0 {
				spec["color"] = w.namespace
			}
			w.xr(kind, fmt.Sprintf("tally-%d-%d", many, i), spec)
			n.add(spec)
		}
		rows[statusOf(kind).Name] = n
	}

	// An XR that requires what does not exist as a kind refers to it all the same.
	seeking := kinds[3]
	w.compose(seeking, step("seeker", nil))
	xr := w.xr(seeking, "seeking", nil)
	w.ready(xr)
	update(w, xr, func(u *unstructured.Unstructured) { u.Object["spec"] = map[string]any{"seek": true} })
	rows[statusOf(seeking).Name] = tally{xrs: 1, required: 1, missing: map[string]bool{"Lost": true}, converged: "True"}

	// An XRD that the API server refuses has no XRs, and does not keep all others from being converged and watched.
	broken := definition("Broken", v1.ScopeNamespaced, `{"type":"object","properties":{"spec":{"type":"text"}}}`)
	w.create(broken)
	rows[broken.Name] = tally{converged: "False"}

	for kind := range cluster.shared { // of which there are no XRs now
		rows[statusOf(schema.GroupVersionKind{Kind: kind}).Name] = tally{converged: "True"}
	}
	rows[watchv1alpha1.NameCluster] = sum(rows)
	want := [][]string{strings.Fields("NAME COMPOSITES REFERENCES WATCHES CONVERGED COMPOSED REQUIRED FAILED")}
	for name, n := range rows {
		want = append(want, n.row(name))
	}
	slices.SortFunc(want[1:], slices.Compare)

	w.eventually("every row to be right", func() (bool, string) {
		now := time.Now()
		got, published := w.rows()
		for name, age := range published {
			dws := &watchv1alpha1.DependencyWatchStatus{}
			dws.Name = name
			w.must(w.admin.Get(t.Context(), key(dws), dws))
			if off := now.Sub(dws.Status.LastPublishedTime.Time) - age; off.Abs() > 2*time.Second {
				return false, fmt.Sprintf("%s was published %s ago, kubectl says %s", name, off+age, age)
			}
		}
		diff := cmp.Diff(want, got)
		return diff == "", diff
	})

	dws := statusOf(schema.GroupVersionKind{Kind: "Broken"})
	if message := w.condition(dws, "Watching", "False", "NotEstablished"); !strings.Contains(message, `kind "Broken"`) {
		t.Errorf("want the kind that is not watched, and why, got %q", message)
	}
	w.condition(statusOf(seeking), "Watching", "False", "WatchesFailed")
	w.condition(statusOf(schema.GroupVersionKind{Kind: "Tally7"}), "Watching", "True", "WatchesActive")
	dws.Name = watchv1alpha1.NameCluster
	message := w.condition(dws, "Watching", "False", "WatchesFailed")
	if !strings.Contains(message, `kind "Lost"`) || strings.Contains(message, "Broken") {
		t.Errorf("want the kind that XRs wait for among what is not watched, and not that which can have none, got %q", message)
	}
}

// sum is the row of all: kinds that XRs of several kinds depend on are watched once.
func sum(rows map[string]tally) tally {
	all := tally{kinds: map[string]bool{}, missing: map[string]bool{}, converged: "True"}
	for _, n := range rows {
		all.xrs += n.xrs
		all.composed += n.composed
		all.required += n.required
		for kind := range n.kinds {
			all.kinds[kind] = true
		}
		for kind := range n.missing {
			all.missing[kind] = true
		}
	}
	return all
}

// rows returns what kubectl prints, sorted by name, and apart from it the column that tells each object's age.
func (w *world) rows() (rows [][]string, published map[string]time.Duration) {
	w.t.Helper()
	out, err := cluster.Plane.Kubectl(w.t.Context(), "get", "dws", "-o", "wide")
	w.must(err)
	published = map[string]time.Duration{}
	for i, line := range strings.Split(strings.TrimSpace(out), "\n") {
		fields := strings.Fields(line)
		const age = 5
		if len(fields) <= age {
			w.t.Fatalf("kubectl printed the row %q", line)
		}
		if i > 0 {
			published[fields[0]], err = time.ParseDuration(fields[age])
			w.must(err)
		}
		rows = append(rows, slices.Delete(fields, age, age+1))
	}
	slices.SortFunc(rows[1:], slices.Compare)
	return rows, published
}
