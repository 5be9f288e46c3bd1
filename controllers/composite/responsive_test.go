// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package composite

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/crosswatch-io/crosswatch/api/apiextensions/v1"
	commonv1 "github.com/crosswatch-io/crosswatch/api/common/v1"
	"github.com/crosswatch-io/crosswatch/internal/breaker"
	"github.com/crosswatch-io/crosswatch/internal/engine"
)

// fighting is the circuit of an XR that somebody undoes.
var fighting = engine.Circuit{Open: true, Loop: breaker.Loop{
	Object: breaker.Object{
		Kind: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"},
		Name: types.NamespacedName{Namespace: "team", Name: "shop-web"},
	},
	Rewritten: true,
}}

func TestReconcileSaysThatAnXRIsSlowedAndWhenThatIsOver(t *testing.T) {
	w := newWorld()
	w.mustReconcile(t)
	if c := find(w.app().Conditions(), commonv1.TypeResponsive); c != nil {
		t.Fatalf("an XR that was never slowed says %+v", *c)
	}
	w.writes()
	w.told()

	w.circuit = fighting
	w.mustReconcile(t)
	w.mustReconcile(t)
	open := w.condition(t, commonv1.TypeResponsive)
	if open.Status != corev1.ConditionFalse || open.Reason != commonv1.ReasonWatchCircuitOpen || !strings.Contains(open.Message, "Deployment team/shop-web") {
		t.Errorf("while it is slowed it says %+v", open)
	}

	w.circuit = engine.Circuit{}
	w.mustReconcile(t)
	w.restart()
	w.mustReconcile(t)
	closed := w.condition(t, commonv1.TypeResponsive)
	if closed.Status != corev1.ConditionTrue || closed.Reason != commonv1.ReasonWatchCircuitClosed || closed.Message != "" {
		t.Errorf("when that is over it says %+v", closed)
	}
	if diff := cmp.Diff([]string{"apply apps/status", "apply apps/status"}, w.writes()); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	want := []string{"Warning WatchCircuitOpen: Responsive is False: " + open.Message, "Normal WatchCircuitClosed: Responsive is True"}
	if diff := cmp.Diff(want, w.told()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestReconcileSaysOfAPausedXRThatItIsNoLongerSlowed(t *testing.T) {
	w := newWorld()
	w.circuit = fighting
	w.mustReconcile(t)
	w.annotate(v1.AnnotationPaused, "true")
	w.mustReconcile(t)
	if c := w.condition(t, commonv1.TypeResponsive); c.Status != corev1.ConditionFalse {
		t.Errorf("paused and slowed, it says %+v", c)
	}
	w.circuit = engine.Circuit{}
	w.mustReconcile(t)
	if c := w.condition(t, commonv1.TypeResponsive); c.Status != corev1.ConditionTrue {
		t.Errorf("paused and not slowed any more, it says %+v", c)
	}
}

func TestReconcileTellsWhatItWrote(t *testing.T) {
	w := newWorld()
	w.mustReconcile(t)
	w.wrote = nil
	w.respond = withStatus(object{"replicas": 2})
	w.mustReconcile(t)
	w.mustReconcile(t)
	if diff := cmp.Diff([]string{"App shop"}, w.wrote); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Case S3: what an XR writes since it follows a new revision is no answer to whatever
// woke it meanwhile.
func TestS3ReconcileAnswersNothingWhenItTakesUpARevision(t *testing.T) {
	w := newWorld()
	itself := func() *engine.Cause { return &engine.Cause{Kind: bare().GroupVersionKind(), Object: key} }
	w.cause = itself()
	w.mustReconcile(t)
	w.catalog.revisions = append(w.catalog.revisions, revision("apps-small", 2))
	w.cause = itself()
	w.mustReconcile(t)
	if w.charged != 0 {
		t.Errorf("%d runs that took up a revision count as answers", w.charged)
	}

	w.Edit(apps, bare(), "tool", func(o object) { delete(o["spec"].(object)["crossplane"].(object), "compositionRevisionRef") })
	w.cause = itself()
	w.mustReconcile(t)
	if w.charged != 1 {
		t.Errorf("%d runs count that wrote again what somebody took away, want 1", w.charged)
	}
}

func TestLoopMessage(t *testing.T) {
	clusterScoped := fighting
	clusterScoped.Object.Name.Namespace = ""
	answering := fighting
	answering.Rewritten = false
	for name, tc := range map[string]struct {
		circuit engine.Circuit
		want    string // how it begins
	}{
		"Fight":         {circuit: fighting, want: "Something changes Deployment team/shop-web whenever this XR has written it"},
		"ClusterScoped": {circuit: clusterScoped, want: "Something changes Deployment shop-web whenever"},
		"Answer":        {circuit: answering, want: "Changes of Deployment team/shop-web make this XR write something too often"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := loopMessage(tc.circuit); !strings.HasPrefix(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
