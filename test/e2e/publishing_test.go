// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	commonv1 "github.com/crosswatch-io/crosswatch/api/common/v1"
	fnv1 "github.com/crosswatch-io/crosswatch/api/fn/v1"
	watchv1alpha1 "github.com/crosswatch-io/crosswatch/api/watch/v1alpha1"
	"github.com/crosswatch-io/crosswatch/cmd/crosswatch/app"
	"github.com/crosswatch-io/crosswatch/test/controlplane"
	"github.com/crosswatch-io/crosswatch/test/functions"
	"github.com/crosswatch-io/crosswatch/test/functions/respond"
)

// total is the status of all XR controllers together.
func total() *watchv1alpha1.DependencyWatchStatus {
	dws := &watchv1alpha1.DependencyWatchStatus{}
	dws.Name = watchv1alpha1.NameCluster
	return dws
}

// audit counts how often each status is written from its start on.
type audit struct {
	w     *world
	start time.Time
	log   controlplane.AuditLog
}

func (w *world) audit() *audit {
	w.t.Helper()
	log, err := cluster.auditLog.FromNow()
	w.must(err)
	return &audit{w: w, start: time.Now(), log: log}
}

// writes counts the requests that wrote a status, by name, whether they changed anything or not.
func (a *audit) writes() map[string]int {
	a.w.t.Helper()
	entries, err := a.log.Entries(func(e *auditv1.Event) bool {
		return isOperators(e) && !e.RequestReceivedTimestamp.Time.Before(a.start) &&
			e.ObjectRef != nil && e.ObjectRef.Resource == "dependencywatchstatuses" &&
			slices.Contains([]string{"create", "update", "patch"}, e.Verb)
	})
	a.w.must(err)
	writes := map[string]int{}
	for _, e := range entries {
		writes[e.ObjectRef.Name]++
	}
	return writes
}

// hoarder requires the ConfigMap that the XR's spec.settings names, if it names one, and for an XR with spec.everything every
// ConfigMap of the namespace and a Secret.
func hoarder(req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
	rsp := respond.To(req)
	respond.Ready(rsp, fnv1.Ready_READY_TRUE)
	spec, _ := respond.Observed(req)["spec"].(map[string]any)
	namespace := functions.XR(req).Namespace
	if name, ok := spec["settings"].(string); ok {
		respond.Require(rsp, "settings", settings(namespace, name))
	}
	if everything, _ := spec["everything"].(bool); everything {
		respond.Require(rsp, "everything", respond.Selector{APIVersion: "v1", Kind: "ConfigMap", Namespace: namespace, Labels: map[string]string{}})
		respond.Require(rsp, "vault", respond.Selector{APIVersion: "v1", Kind: "Secret", Namespace: namespace, Name: "vault"})
		found, _ := respond.Required(req, "everything")
		secrets, _ := respond.Required(req, "vault")
		respond.Status(rsp, map[string]any{"value": fmt.Sprint(len(found), len(secrets))})
	}
	return rsp, nil
}

// Case L2: what is published is counts, however much there is to count: small, not written again when nothing changed, not more
// often than the interval allows when everything does, and without anything of what is counted. (That a list which is cut says so
// takes more kinds than a test should make: the publisher's own tests do.)
func TestL2AStatusStaysSmallQuietRareAndFreeOfSecrets(t *testing.T) {
	const (
		xrs, greedy, objects = 1000, 3, 2000
		interval             = time.Second
		busyFor              = 5 * interval
		treasure             = "needle-in-the-vault"
	)
	w := newWorld(t)
	// Registered first, this runs last: without XRs, nobody is woken by it.
	t.Cleanup(func() {
		w.must(w.admin.DeleteAllOf(cleanupContext(t), &configMap{}, client.InNamespace(w.namespace)))
	})
	w.run(interval) // the race detector would have it take twice as long
	server := w.function("hoarder", hoarder)
	kind := w.define("Hoard")
	w.compose(kind, step("hoarder", nil))
	w.readableSecrets()
	w.create(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "vault"}, Data: map[string][]byte{"key": []byte(treasure)},
	})
	seen := w.record()

	w.concurrently(objects, func(i int) error {
		return w.admin.Create(t.Context(), w.configMap(fmt.Sprintf("hoarded-%d", i), nil, map[string]string{"value": "0"}))
	})
	hoarders := w.crowd(kind, "hoarder", xrs, func(i int) map[string]any {
		return map[string]any{"settings": fmt.Sprintf("hoarded-%d", i), "everything": i < greedy}
	})
	own, all := statusOf(kind), total()
	truth := []int64{xrs, xrs + 2*greedy, 0, xrs + 2*greedy, xrs + greedy, greedy, 2}
	w.eventually("the truth of all XRs", w.shows(own, truth...))
	w.eventually("the truth of the cluster", w.shows(all, truth...))
	w.condition(own, "Converged", "True", "Tracked")
	for i := range greedy {
		w.eventually("all that is hoarded", w.has(hoarders.xr(i), fmt.Sprint(objects, 1), "status", "value"))
	}
	w.settled(server.TotalCalls)
	w.quiet(3 * interval)

	start := time.Now()
	busy := w.audit()
	w.concurrently(4, func(worker int) error { return w.shake(hoarders, objects, worker, start.Add(busyFor)) })
	writes := busy.writes()
	elapsed := time.Since(start)
	for _, name := range []string{own.Name, all.Name} {
		most := int(elapsed/interval) + 1
		t.Logf("%s was written %d times in %s", name, writes[name], elapsed.Round(time.Millisecond))
		if writes[name] < 2 || writes[name] > most {
			t.Errorf("%s was written %d times in %s, want at least 2 and at most %d", name, writes[name], elapsed, most)
		}
	}

	secrets := []string{treasure, base64.StdEncoding.EncodeToString([]byte(treasure))}
	for _, version := range seen() {
		if len(version) > 100<<10 {
			t.Errorf("a published object has %d bytes: %.200s", len(version), version)
		}
		for _, word := range append(secrets, "hoarded-", "hoarder-", "vault") {
			if strings.Contains(version, word) {
				t.Errorf("a published object shows %q: %s", word, version)
			}
		}
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind)
	w.must(w.admin.List(t.Context(), list, client.InNamespace(w.namespace)))
	raw, err := json.Marshal(list)
	w.must(err)
	for _, word := range append(secrets, "vault") {
		if len(list.Items) != xrs || bytes.Contains(raw, []byte(word)) {
			t.Errorf("one of %d XRs shows %q", len(list.Items), word)
		}
	}
}

// readableSecrets grants the operator what a platform would that composes with Secrets.
func (w *world) readableSecrets() {
	w.t.Helper()
	w.create(&rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: w.namespace + "-secrets", Labels: map[string]string{"crosswatch.io/aggregate-to-crosswatch": "true"}},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get", "list", "watch"}}},
	})
}

// record keeps every version of every status from here on, and returns a function that ends it and returns them as JSON.
func (w *world) record() (seen func() []string) {
	w.t.Helper()
	watch, err := w.admin.Watch(w.t.Context(), &watchv1alpha1.DependencyWatchStatusList{})
	w.must(err)
	var versions []string
	var recording errgroup.Group
	recording.Go(func() error {
		for event := range watch.ResultChan() {
			raw, err := json.Marshal(event.Object)
			if err != nil {
				return err
			}
			versions = append(versions, string(raw))
		}
		return nil
	})
	w.t.Cleanup(watch.Stop)
	return func() []string {
		watch.Stop()
		w.must(recording.Wait())
		if len(versions) == 0 {
			w.t.Fatal("nothing was published")
		}
		return versions
	}
}

// quiet fails if a status is written within that time.
func (w *world) quiet(long time.Duration) {
	w.t.Helper()
	log := w.audit()
	<-time.After(long)
	if writes := log.writes(); len(writes) > 0 {
		w.t.Errorf("written although nothing changed: %v", writes)
	}
}

// shake changes ConfigMaps that XRs require, and what XRs require, until that time.
func (w *world) shake(xrs *crowd, objects, worker int, until time.Time) error {
	for i := worker; time.Now().Before(until); i += 4 {
		cm := w.configMap(fmt.Sprintf("hoarded-%d", i%objects), nil, nil)
		patch := fmt.Appendf(nil, `{"data":{"value":"%d"}}`, i)
		if err := w.admin.Patch(w.t.Context(), cm, client.RawPatch(types.MergePatchType, patch)); err != nil {
			return err
		}
		// Not one of those that hoard: their runs are slow, and would leave the others little.
		xr := xrs.xr(xrs.many/2 + i%(xrs.many/2))
		patch = fmt.Appendf(nil, `{"spec":{"settings":null,"turn":%d}}`, i)
		if err := w.admin.Patch(w.t.Context(), xr, client.RawPatch(types.MergePatchType, patch)); err != nil {
			return err
		}
	}
	return nil
}

// What is ours is corrected once, whatever was done to it; what is not ours stays, and is no reason to write.
func TestAHandEditOfAStatusIsUndone(t *testing.T) {
	w := newWorld(t)
	first := w.operate()
	w.function("reader", reader)
	kind := w.define("Edited")
	w.compose(kind, step("reader", nil))
	w.ready(w.xr(kind, "xr", map[string]any{"settings": "settings"}))
	own, all := statusOf(kind), total()
	truth := w.shows(own, 1, 1, 0, 1, 1, 0, 1)
	w.eventually("the truth", truth)
	w.condition(own, "Converged", "True", "Tracked")
	w.condition(own, "Watching", "True", "WatchesActive")
	w.must(w.admin.Get(t.Context(), key(own), own))
	before := contentOf(own)

	edit := func(dws *watchv1alpha1.DependencyWatchStatus) {
		w.t.Helper()
		w.must(w.admin.Get(t.Context(), key(dws), dws))
		dws.Status.References.Total = 99
		dws.Status.KindsOmitted = 7
		dws.Status.Operator = &watchv1alpha1.OperatorInfo{Version: "mine", Leader: "me"}
		dws.Status.SetConditions(commonv1.True("Pretty", "ISaySo"), commonv1.False("Watching", "Gone", "I was here"))
		w.must(w.admin.Status().Update(t.Context(), dws))
	}
	restored := func() (bool, string) {
		ok, seen := truth()
		return ok && contentOf(own) == before, seen + cmp.Diff(before, contentOf(own))
	}
	edit(own)
	w.eventually("the edit to be undone", restored)

	ns := &corev1.Namespace{}
	w.must(w.admin.Get(t.Context(), client.ObjectKey{Name: w.namespace}, ns))
	owner := metav1.OwnerReference{APIVersion: "v1", Kind: "Namespace", Name: ns.Name, UID: ns.UID}
	update(w, own, func(dws *watchv1alpha1.DependencyWatchStatus) {
		dws.Labels = map[string]string{"team": "a"}
		dws.Annotations = map[string]string{"note": "b"}
		dws.OwnerReferences = append(dws.OwnerReferences, owner)
	})
	w.quiet(time.Second)
	w.must(w.admin.Get(t.Context(), key(own), own))
	if own.Labels["team"] != "a" || own.Annotations["note"] != "b" || !slices.Contains(own.OwnerReferences, owner) {
		t.Errorf("what somebody else added is gone: %+v", own.ObjectMeta)
	}

	// A leader finds what was done while there was none, and says who it is.
	w.must(w.admin.Get(t.Context(), key(all), all))
	leader := all.Status.Operator.Leader
	first.stop()
	edit(own)
	w.must(w.admin.Delete(t.Context(), all))
	w.operate()
	w.eventually("the edit to be undone by the next leader", restored)
	w.eventually("the status of all to come back, from another leader", func() (bool, string) {
		err := w.admin.Get(t.Context(), key(all), all)
		o := all.Status.Operator
		return err == nil && o != nil && o.Leader != leader && o.Version == app.Version(), fmt.Sprint(err, o)
	})

	w.must(w.admin.Delete(t.Context(), own))
	w.eventually("the deleted status to come back", func() (bool, string) {
		again := statusOf(kind)
		if err := w.admin.Get(t.Context(), key(again), again); err != nil {
			return false, err.Error()
		}
		return again.UID != own.UID && contentOf(again) == before, contentOf(again)
	})
}

// contentOf is a status without what each publication changes.
func contentOf(dws *watchv1alpha1.DependencyWatchStatus) string {
	status := dws.Status.DeepCopy()
	status.LastPublishedTime = nil
	for i := range status.Conditions {
		status.Conditions[i].LastTransitionTime = metav1.Time{}
	}
	raw, err := json.Marshal(status)
	if err != nil {
		return err.Error()
	}
	return string(raw)
}

func TestTheStatusOfAnXRDThatIsGoneGoes(t *testing.T) {
	w := newWorld(t)
	first := w.operate()
	kind := w.define("Passed")
	own := statusOf(kind)
	w.eventually("the status", w.shows(own, 0, 0, 0, 0, 0, 0, 0))

	// Not owned by anybody, it is for the operator to delete, also if the XRD went while it was away.
	first.stop()
	orphan := statusOf(schema.GroupVersionKind{Kind: "Never"})
	w.must(w.admin.Create(t.Context(), orphan))
	w.operate()
	gone := func(dws *watchv1alpha1.DependencyWatchStatus) func() (bool, string) {
		return func() (bool, string) {
			err := w.admin.Get(t.Context(), key(dws), dws)
			return client.IgnoreNotFound(err) == nil && err != nil, fmt.Sprint(err)
		}
	}
	w.eventually("the status of no XRD to go", gone(orphan))
	xrd := definition(kind.Kind, "", anyFields)
	w.must(w.admin.Delete(t.Context(), xrd))
	w.eventually("the status to go with its XRD", gone(own))
}
