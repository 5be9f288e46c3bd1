// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package composite

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	v1 "github.com/crosswatch-io/crosswatch/api/apiextensions/v1"
	commonv1 "github.com/crosswatch-io/crosswatch/api/common/v1"
	fnv1 "github.com/crosswatch-io/crosswatch/api/fn/v1"
	"github.com/crosswatch-io/crosswatch/internal/apifault"
	"github.com/crosswatch-io/crosswatch/internal/composer/fakeapi"
	"github.com/crosswatch-io/crosswatch/internal/engine"
	"github.com/crosswatch-io/crosswatch/internal/function"
)

func TestReconcileSettles(t *testing.T) {
	w := newWorld()
	w.respond = withStatus(object{"replicas": 2})
	w.mustReconcile(t)
	if diff := cmp.Diff([]string{"apply apps", "apply apps/status"}, w.writes()); diff != "" {
		t.Errorf("writes of the first run (-want +got):\n%s", diff)
	}
	app := w.app()
	if app.CompositionRef() != "apps-small" || app.CompositionRevisionRef() != "apps-small-1" {
		t.Errorf("composed with %q, %q", app.CompositionRef(), app.CompositionRevisionRef())
	}
	if app.GetLabels()[v1.LabelComposite] != key.Name || len(app.GetFinalizers()) != 1 {
		t.Errorf("labels %v, finalizers %v", app.GetLabels(), app.GetFinalizers())
	}
	for conditionType, reason := range map[string]string{
		commonv1.TypeSynced: commonv1.ReasonReconcileSuccess, commonv1.TypeReady: commonv1.ReasonAvailable,
	} {
		if c := w.condition(t, conditionType); c.Reason != reason || c.Status != corev1.ConditionTrue {
			t.Errorf("condition %+v", c)
		}
	}

	w.clock.SetTime(w.clock.Now().Add(time.Hour))
	w.mustReconcile(t)
	w.restart()
	w.mustReconcile(t)
	if got := w.writes(); len(got) > 0 {
		t.Errorf("unexpected writes: %q", got)
	}
	if got := w.told(); len(got) > 0 {
		t.Errorf("unexpected events: %q", got)
	}
}

// A relay: each run's status is what the next one reads. Every hop is one run,
// and the last writes nothing.
func TestReconcileRelaySettles(t *testing.T) {
	w := newWorld()
	w.respond = func(req *fnv1.RunFunctionRequest) *fnv1.RunFunctionResponse {
		status, _ := req.GetObserved().GetComposite().GetResource().AsMap()["status"].(object)
		next := object{"first": "a"}
		for from, to := range map[string]string{"first": "second", "second": "third"} {
			if v, ok := status[from]; ok {
				next[to] = v
			}
		}
		return withStatus(next)(req)
	}
	for hop := range 3 {
		w.mustReconcile(t)
		if got := w.writes(); len(got) == 0 || got[len(got)-1] != "apply apps/status" {
			t.Errorf("hop %d writes %q", hop, got)
		}
	}
	w.mustReconcile(t)
	if got := w.writes(); len(got) > 0 {
		t.Errorf("unexpected writes: %q", got)
	}
	if got, _, _ := unstructured.NestedString(w.app().Object, "status", "third"); got != "a" {
		t.Errorf("the third hop has %q", got)
	}
}

func TestReconcileLeavesNoTraceOfRequirements(t *testing.T) {
	w := newWorld()
	w.mustReconcile(t)
	stored, err := json.Marshal(w.app().Object)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(stored), "luster") {
		t.Errorf("the XR shows what is required: %s", stored)
	}
	if got := w.Stats().Required; got != 1 {
		t.Errorf("%d references are tracked, want 1", got)
	}
}

func TestReconcileFatal(t *testing.T) {
	w := newWorld()
	w.respond = func(req *fnv1.RunFunctionRequest) *fnv1.RunFunctionResponse {
		r := withStatus(object{"replicas": 2})(req)
		r.Conditions = []*fnv1.Condition{
			{Type: "Placed", Status: fnv1.Status_STATUS_CONDITION_TRUE, Reason: "Fits"},
			{Type: "Paid", Status: fnv1.Status_STATUS_CONDITION_TRUE, Reason: "Card"},
		}
		return r
	}
	w.mustReconcile(t)
	// L1: what others say of the XR stays.
	w.EditStatus(apps, bare(), "someone", func(o object) {
		have, _, _ := unstructured.NestedSlice(o, "status", "conditions")
		theirs := object{"type": "Theirs", "status": "True", "reason": "Sure", "lastTransitionTime": "2025-01-01T00:00:00Z"}
		if err := unstructured.SetNestedSlice(o, append(have, theirs), "status", "conditions"); err != nil {
			t.Fatal(err)
		}
	})
	w.writes()

	w.respond = func(*fnv1.RunFunctionRequest) *fnv1.RunFunctionResponse {
		return &fnv1.RunFunctionResponse{
			Conditions: []*fnv1.Condition{{Type: "Placed", Status: fnv1.Status_STATUS_CONDITION_FALSE, Reason: "NoRoom"}},
			Results:    []*fnv1.Result{{Severity: fnv1.Severity_SEVERITY_FATAL, Message: "no cluster is ready"}},
		}
	}
	if _, err := w.reconcile(t); err == nil {
		t.Error("a fatal result is tried again")
	}
	want := map[string]string{
		commonv1.TypeSynced: commonv1.ReasonReconcileError, commonv1.TypeReady: commonv1.ReasonAvailable,
		"Placed": "NoRoom", "Paid": commonv1.ReasonFatalError, "Theirs": "Sure",
	}
	got := map[string]string{}
	for _, c := range w.app().Conditions() {
		got[c.Type] = c.Reason
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
	if replicas, _, _ := unstructured.NestedInt64(w.app().Object, "status", "replicas"); replicas != 2 {
		t.Errorf("the XR did not keep its status: %v", w.app().Object["status"])
	}
	wantTold := []string{
		"Warning NoRoom: Placed is False",
		`Warning ReconcileError: Synced is False: pipeline: step "make" returned a fatal result: no cluster is ready`,
	}
	if diff := cmp.Diff(wantTold, w.told()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if w.Stats().Required != 1 {
		t.Errorf("a failed run forgets nothing: %+v", w.Stats())
	}

	w.writes()
	_, _ = w.reconcile(t)
	if writes, told := w.writes(), w.told(); len(writes)+len(told) > 0 {
		t.Errorf("the same failure again writes %q and tells %q", writes, told)
	}
}

func TestReconcileErrors(t *testing.T) {
	watch := func(state engine.State) error {
		return &engine.WatchError{GVK: schema.GroupVersionKind{Kind: "Cluster"}, State: state, Message: "why"}
	}
	cases := map[string]struct {
		reason  string
		err     error
		want    string
		retried bool
		refused bool
	}{
		"Function":  {reason: "Trying again may help.", err: errors.New("unreachable"), want: commonv1.ReasonReconcileError, retried: true},
		"Starting":  {reason: "The watch wakes the XR.", err: watch(engine.Starting), want: commonv1.ReasonWaitingForWatch},
		"Forbidden": {reason: "The watch wakes the XR when it is mended.", err: watch(engine.Forbidden), want: commonv1.ReasonReconcileError},
		"Both": {
			reason: "The watch mends but one of them.", err: errors.Join(watch(engine.Forbidden), errors.New("unreachable")),
			want: commonv1.ReasonReconcileError, retried: true,
		},
		"Refused": {
			reason: "A grant may come earlier than the next try.",
			err:    errors.Join(errors.New("other"), fmt.Errorf("apply: %w", apifault.Stable(apierrors.NewForbidden(schema.GroupResource{}, "a", nil)))),
			want:   commonv1.ReasonReconcileError, retried: true, refused: true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.runErr = tc.err
			_, err := w.reconcile(t)
			if got := err != nil; got != tc.retried {
				t.Errorf("%s Error: %v", tc.reason, err)
			}
			if got := w.refused == 1; got != tc.refused {
				t.Errorf("%s Refused %d times", tc.reason, w.refused)
			}
			if c := w.condition(t, commonv1.TypeSynced); c.Reason != tc.want || c.Status != corev1.ConditionFalse {
				t.Errorf("%s Condition: %+v", tc.reason, c)
			}
			if w.Stats().Required != 1 {
				t.Errorf("%s Not recorded: %+v", tc.reason, w.Stats())
			}
		})
	}
}

// A function that is not called since others wait for it may be well: the XR says
// what it said before, and is tried again.
func TestReconcileTellsNobodyOfACallThatWasTooEarly(t *testing.T) {
	w := newWorld()
	w.mustReconcile(t)
	w.writes()
	w.annotate("touched", "true")
	w.runErr = fmt.Errorf("step: %w", &function.CallError{Function: "f", Early: true})
	if _, err := w.reconcile(t); err == nil {
		t.Error("the XR is not tried again")
	}
	if got := w.writes(); len(got) > 0 {
		t.Errorf("unexpected writes: %q", got)
	}
	if c := w.condition(t, commonv1.TypeSynced); c.Status != corev1.ConditionTrue {
		t.Errorf("Synced is %+v", c)
	}

	told := func(why string) {
		t.Helper()
		if _, err := w.reconcile(t); err == nil {
			t.Error("the XR is not tried again")
		}
		if c := w.condition(t, commonv1.TypeSynced); c.Status != corev1.ConditionFalse {
			t.Errorf("%s, but Synced is %+v", why, c)
		}
	}
	w.clock.SetTime(w.clock.Now().Add(silence))
	told("it was too early for a minute")

	w.runErr = nil
	w.mustReconcile(t)
	w.runErr = &function.CallError{Function: "f"}
	told("the function is known to hang")
}

func TestReconcileDeletion(t *testing.T) {
	w := newWorld()
	w.mustReconcile(t)
	w.writes()
	runs := w.runs
	w.delete(t)
	w.writes()

	w.mustReconcile(t)
	if diff := cmp.Diff([]string{"patch apps"}, w.writes()); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	if w.runs != runs || w.Get(apps, key.Namespace, key.Name) != nil {
		t.Errorf("the function ran %d times more, and the XR is %v", w.runs-runs, w.Get(apps, key.Namespace, key.Name))
	}
	w.mustReconcile(t)
	if w.Stats().XRs != 0 || len(w.reconciler.memory.byXR) != 0 {
		t.Errorf("remembered: %+v, %v", w.Stats(), w.reconciler.memory.byXR)
	}
}

func TestReconcilePause(t *testing.T) {
	w := newWorld()
	w.respond = withStatus(object{"replicas": 2})
	w.mustReconcile(t)
	w.writes()
	runs := w.runs

	w.annotate(v1.AnnotationPaused, "true")
	w.mustReconcile(t)
	w.mustReconcile(t)
	if diff := cmp.Diff([]string{"apply apps/status"}, w.writes()); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	if c := w.condition(t, commonv1.TypeSynced); c.Reason != commonv1.ReasonReconcilePaused {
		t.Errorf("condition %+v", c)
	}
	if w.runs != runs || w.condition(t, commonv1.TypeReady).Reason != commonv1.ReasonAvailable {
		t.Error("a paused XR is left as it is")
	}

	w.annotate(v1.AnnotationPaused, "false")
	w.mustReconcile(t)
	want := []string{"Normal ReconcilePaused: Synced is False: " + pausedMessage, "Normal ReconcileSuccess: Synced is True"}
	if diff := cmp.Diff(want, w.told()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// However a run that mends a failure was held up: who heard of the failure hears of
// the end of it.
func TestReconcileTellsThatAFailureIsOver(t *testing.T) {
	w := newWorld()
	var told []string
	for _, err := range []error{errors.New("unreachable"), &engine.WatchError{State: engine.Starting}, nil, nil} {
		w.runErr = err
		_, _ = w.reconcile(t)
		told = append(told, w.told()...)
	}
	want := []string{
		"Warning ReconcileError: Synced is False: pipeline: unreachable",
		"Normal Available: Ready is True",
		"Normal ReconcileSuccess: Synced is True",
	}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestReconcileTellsNoConditionThatTheXRDoesNotShow(t *testing.T) {
	w := newWorld()
	status := fnv1.Status_STATUS_CONDITION_TRUE
	w.respond = func(*fnv1.RunFunctionRequest) *fnv1.RunFunctionResponse {
		return &fnv1.RunFunctionResponse{Conditions: []*fnv1.Condition{{Type: "Placed", Status: status, Reason: "Moved"}}}
	}
	w.mustReconcile(t)
	w.told()

	status = fnv1.Status_STATUS_CONDITION_FALSE
	w.Refuse = func(write fakeapi.Write, _ *unstructured.Unstructured) error {
		if write.Subresource == "status" {
			return apierrors.NewServiceUnavailable("busy")
		}
		return nil
	}
	for range 2 {
		if _, err := w.reconcile(t); err == nil {
			t.Error("a status that could not be written is tried again")
		}
	}
	if got := w.told(); len(got) > 0 {
		t.Errorf("told what the XR does not show: %q", got)
	}
	w.Refuse = nil
	w.mustReconcile(t)
	if diff := cmp.Diff([]string{"Warning Moved: Placed is False"}, w.told()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// What a run was for is what the next one is for, if somebody else wrote to the XR
// under its hands.
func TestReconcileLeavesItsCauseToTheNextRun(t *testing.T) {
	w := newWorld()
	w.mustReconcile(t)
	w.told()
	w.respond = withStatus(object{"replicas": 2})
	w.cause = &engine.Cause{Kind: schema.GroupVersionKind{Kind: "Cluster"}, Object: types.NamespacedName{Name: "east"}}
	w.Refuse = func(write fakeapi.Write, _ *unstructured.Unstructured) error {
		return apierrors.NewConflict(schema.GroupResource{Resource: write.Resource}, write.Name, errors.New("it was modified"))
	}
	w.mustReconcile(t)
	w.Refuse = nil
	w.mustReconcile(t)
	if diff := cmp.Diff([]string{"Normal Woken: Reconciled because of Cluster east"}, w.told()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestReconcileAcknowledgesRequests(t *testing.T) {
	w := newWorld()
	w.annotate(v1.AnnotationReconcileRequestedAt, "token")
	w.mustReconcile(t)
	if got := w.app().LastHandledReconcileAt(); got != "token" {
		t.Errorf("acknowledged %q", got)
	}
}

func TestReconcileTellsNewsOnce(t *testing.T) {
	w := newWorld()
	w.respond = func(*fnv1.RunFunctionRequest) *fnv1.RunFunctionResponse {
		return &fnv1.RunFunctionResponse{Results: []*fnv1.Result{
			{Severity: fnv1.Severity_SEVERITY_WARNING, Message: "hot"},
			{Severity: fnv1.Severity_SEVERITY_NORMAL, Message: "placed", Reason: ptr.To("Placed")},
			{Severity: fnv1.Severity_SEVERITY_WARNING, Message: "hot"},
			{Severity: fnv1.Severity_SEVERITY_WARNING, Message: "loud"},
		}}
	}
	w.mustReconcile(t)
	want := []string{
		`Warning ComposeResources: Pipeline step "make": hot`,
		`Normal Placed: Pipeline step "make": placed`,
		`Warning ComposeResources: Pipeline step "make": loud`,
	}
	if diff := cmp.Diff(want, w.told()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	w.mustReconcile(t)
	w.restart()
	w.mustReconcile(t)
	if got := w.told(); len(got) > 0 {
		t.Errorf("a state is no news: %q", got)
	}
}

// An event is a write: what woke an XR is told only if it had an effect.
func TestReconcileTellsWhatWokeIt(t *testing.T) {
	cluster := &engine.Cause{
		Kind:   schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Cluster"},
		Object: types.NamespacedName{Namespace: "infra", Name: "east"},
	}
	itself := &engine.Cause{Kind: bare().GroupVersionKind(), Object: key}
	tests := map[string]struct {
		cause    *engine.Cause
		replicas int
		want     []string
	}{
		"ChangedSomething":   {cause: cluster, replicas: 3, want: []string{"Normal Woken: Reconciled because of Cluster infra/east"}},
		"ChangedNothing":     {cause: cluster, replicas: 2},
		"Itself":             {cause: itself, replicas: 3},
		"WokenByNothing":     {replicas: 3},
		"ItselfAndNoChanges": {cause: itself, replicas: 2},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.respond = withStatus(object{"replicas": 2})
			w.mustReconcile(t)
			w.told()

			w.cause = tc.cause
			w.respond = withStatus(object{"replicas": tc.replicas})
			w.mustReconcile(t)
			if diff := cmp.Diff(tc.want, w.told()); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}

func TestIsNews(t *testing.T) {
	condition := func(conditionType string, status corev1.ConditionStatus, reason, message string) commonv1.Condition {
		return commonv1.Condition{Type: conditionType, Status: status, Reason: reason, Message: message}
	}
	var (
		synced  = condition("Synced", corev1.ConditionTrue, "ReconcileSuccess", "")
		failed  = condition("Synced", corev1.ConditionFalse, "ReconcileError", "a")
		waiting = condition("Synced", corev1.ConditionFalse, "WaitingForWatch", "a")
		ready   = condition("Ready", corev1.ConditionTrue, "Available", "")
		unready = condition("Ready", corev1.ConditionFalse, "Creating", "a")
	)
	tests := map[string]struct {
		was  *commonv1.Condition
		now  commonv1.Condition
		want bool
	}{
		"FirstSuccess":        {now: synced},
		"FirstFailure":        {now: failed, want: true},
		"FirstUnready":        {now: unready},
		"BecameReady":         {was: &unready, now: ready, want: true},
		"StillReady":          {was: &ready, now: ready},
		"OtherWords":          {was: &unready, now: unready.WithMessage("b")},
		"OtherFailure":        {was: &failed, now: failed.WithMessage("b"), want: true},
		"SameFailure":         {was: &failed, now: failed},
		"Mended":              {was: &failed, now: synced, want: true},
		"StartsWaiting":       {was: &synced, now: waiting},
		"WaitedAndSucceeded":  {was: &waiting, now: synced},
		"WaitedAndFailed":     {was: &waiting, now: failed, want: true},
		"FollowsFromAnother":  {was: &ready, now: condition("Ready", corev1.ConditionUnknown, "FatalError", "")},
		"FirstSlowed":         {now: condition("Responsive", corev1.ConditionFalse, "WatchCircuitOpen", "a"), want: true},
		"OtherReasonForFalse": {was: &unready, now: condition("Ready", corev1.ConditionFalse, "Deleting", "a"), want: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := isNews(tc.was, tc.now); got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
		})
	}
}

func TestReconcileCountsResults(t *testing.T) {
	w := newWorld()
	steps := []struct {
		want string
		set  func()
	}{
		{resultSynced, func() {}},
		{resultFatal, func() {
			w.respond = func(*fnv1.RunFunctionRequest) *fnv1.RunFunctionResponse {
				return &fnv1.RunFunctionResponse{Results: []*fnv1.Result{{Severity: fnv1.Severity_SEVERITY_FATAL, Message: "no"}}}
			}
		}},
		{resultFailed, func() { w.runErr = errors.New("unreachable") }},
		{resultWaiting, func() { w.runErr = &engine.WatchError{State: engine.Starting} }},
		{resultPaused, func() { w.annotate("crossplane.io/paused", "true") }},
		{resultDeleting, func() { w.delete(t) }},
		{resultForgotten, func() {}},
	}
	for _, s := range steps {
		s.set()
		_, _ = w.reconcile(t)
		if diff := cmp.Diff([]string{s.want}, w.results); diff != "" {
			t.Errorf("results (-want +got):\n%s", diff)
		}
		w.results = nil
	}
}

func TestReconcileStatusIsRefused(t *testing.T) {
	w := newWorld()
	w.respond = withStatus(object{"replicas": "many"})
	w.Refuse = func(write fakeapi.Write, obj *unstructured.Unstructured) error {
		if _, found, _ := unstructured.NestedString(obj.Object, "status", "replicas"); write.Subresource == "status" && found {
			return apierrors.NewInvalid(schema.GroupKind{Kind: "App"}, key.Name, nil)
		}
		return nil
	}
	if _, err := w.reconcile(t); !apierrors.IsInvalid(err) {
		t.Errorf("error %v", err)
	}
	if c := w.condition(t, commonv1.TypeSynced); !strings.Contains(c.Message, "cannot write the status") {
		t.Errorf("condition %+v", c)
	}
}

func TestReconcileConflicts(t *testing.T) {
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "any"}, "any", errors.New("it was modified"))
	cases := map[string]struct {
		reason string
		write  fakeapi.Write
		err    error // of the function
		quiet  bool
		status bool // is written
	}{
		"Claim": {
			reason: "The XR is another by now.",
			write:  fakeapi.Write{Verb: "apply", Resource: "apps", Name: key.Name}, quiet: true,
		},
		"Status": {
			reason: "So it is here.",
			write:  fakeapi.Write{Verb: "apply", Resource: "apps", Name: key.Name, Subresource: "status"}, quiet: true,
		},
		"StatusOfAFailure": {
			reason: "What failed is still to be tried again.",
			write:  fakeapi.Write{Verb: "apply", Resource: "apps", Name: key.Name, Subresource: "status"}, err: errors.New("unreachable"),
		},
		"Composed": {
			reason: "A conflict over something else is a fault like others.",
			write:  fakeapi.Write{Verb: "apply", Resource: "things", Name: "a"}, status: true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.runErr = tc.err
			w.respond = func(*fnv1.RunFunctionRequest) *fnv1.RunFunctionResponse {
				return &fnv1.RunFunctionResponse{Desired: &fnv1.State{Resources: map[string]*fnv1.Resource{
					"a": {Resource: toStruct(object{"apiVersion": "example.org/v1", "kind": "Thing", "metadata": object{"name": "a"}})},
				}}}
			}
			w.Refuse = func(write fakeapi.Write, _ *unstructured.Unstructured) error {
				if write == tc.write {
					return conflict
				}
				return nil
			}
			result, err := w.reconcile(t)
			if got := err == nil; got != tc.quiet {
				t.Errorf("%s Error: %v", tc.reason, err)
			}
			if got := result.RequeueAfter == catchUp; got != tc.quiet {
				t.Errorf("%s Result: %+v", tc.reason, result)
			}
			if got := find(w.app().Conditions(), commonv1.TypeSynced) != nil; got != tc.status {
				t.Errorf("%s Conditions: %v", tc.reason, w.app().Conditions())
			}
			if got := len(w.told()) > 0; got != tc.status {
				t.Errorf("%s Told: %v", tc.reason, got)
			}
		})
	}
}

// A status that is refused must not hide what else went wrong.
func TestReconcileConflictWithARefusedStatus(t *testing.T) {
	w := newWorld()
	w.respond = func(*fnv1.RunFunctionRequest) *fnv1.RunFunctionResponse {
		r := withStatus(object{"replicas": "many"})(nil)
		r.Desired.Resources = map[string]*fnv1.Resource{
			"a": {Resource: toStruct(object{"apiVersion": "example.org/v1", "kind": "Thing", "metadata": object{"name": "a"}})},
		}
		return r
	}
	w.Refuse = func(write fakeapi.Write, obj *unstructured.Unstructured) error {
		switch _, found, _ := unstructured.NestedString(obj.Object, "status", "replicas"); {
		case write.Resource == "things":
			return apierrors.NewConflict(schema.GroupResource{Resource: "things"}, "a", errors.New("it was modified"))
		case write.Subresource == "status" && found:
			return apierrors.NewInvalid(schema.GroupKind{Kind: "App"}, key.Name, nil)
		}
		return nil
	}
	if _, err := w.reconcile(t); err == nil {
		t.Error("nothing is tried again")
	}
	for _, part := range []string{"it was modified", "cannot write the status"} {
		if c := w.condition(t, commonv1.TypeSynced); !strings.Contains(c.Message, part) {
			t.Errorf("condition %+v", c)
		}
	}
}

// A run that fails in a new version of the kind keeps what functions said in
// the old one.
func TestReconcileKeepsStatusAcrossVersions(t *testing.T) {
	w := newWorld()
	w.respond = withStatus(object{"replicas": 2})
	w.mustReconcile(t)
	w.Edit(apps, bare(), "user", func(o object) {
		for _, entry := range o["metadata"].(object)["managedFields"].([]any) {
			entry.(object)["apiVersion"] = "example.org/v0"
		}
	})
	w.runErr = errors.New("unreachable")
	_, _ = w.reconcile(t)
	if replicas, _, _ := unstructured.NestedInt64(w.app().Object, "status", "replicas"); replicas != 2 {
		t.Errorf("the status is lost: %v", w.app().Object["status"])
	}
}

func TestReconcileDropsReferencesToNothing(t *testing.T) {
	w := newWorld()
	w.Edit(apps, bare(), "user", func(o object) {
		o["spec"].(object)["crossplane"] = object{"resourceRefs": []any{object{"apiVersion": "example.org/v1", "kind": "Thing"}}}
	})
	for range 3 {
		w.mustReconcile(t)
	}
	w.writes()
	w.mustReconcile(t)
	if got := w.writes(); len(got) > 0 || len(w.app().ResourceRefs()) > 0 {
		t.Errorf("writes %q, references %v", got, w.app().ResourceRefs())
	}
}

// S2: what exists stays, the message is one, and the XR recovers by itself.
func TestReconcileS2WithoutComposition(t *testing.T) {
	w := newWorld()
	w.mustReconcile(t)
	compositions := w.catalog.compositions
	w.catalog.compositions = nil
	w.writes()

	for range 3 {
		if _, err := w.reconcile(t); err == nil || w.settled == 0 {
			t.Errorf("error %v, settled %d", err, w.settled)
		}
	}
	if diff := cmp.Diff([]string{"apply apps/status"}, w.writes()); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	if c := w.condition(t, commonv1.TypeSynced); !strings.Contains(c.Message, `"apps-small"`) {
		t.Errorf("condition %+v", c)
	}
	w.catalog.compositions = compositions
	w.mustReconcile(t)
	if c := w.condition(t, commonv1.TypeSynced); c.Status != corev1.ConditionTrue {
		t.Errorf("condition %+v", c)
	}
}

func TestReconcileFollowsANewRevision(t *testing.T) {
	w := newWorld()
	w.mustReconcile(t)
	w.writes()
	w.catalog.revisions = append(w.catalog.revisions, revision("apps-small", 2))
	w.mustReconcile(t)
	if diff := cmp.Diff([]string{"apply apps"}, w.writes()); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	if got := w.app().CompositionRevisionRef(); got != "apps-small-2" {
		t.Errorf("revision %q", got)
	}
}

func TestReconcileDoesNotBringBackTheDead(t *testing.T) {
	w := newWorld()
	w.respond = func(*fnv1.RunFunctionRequest) *fnv1.RunFunctionResponse {
		w.Remove(apps, key.Namespace, key.Name)
		return withStatus(object{"replicas": 1})(nil)
	}
	w.mustReconcile(t)
	if w.Get(apps, key.Namespace, key.Name) != nil {
		t.Error("the XR came back")
	}
}
