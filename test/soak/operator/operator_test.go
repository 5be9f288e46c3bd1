// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crosswatch-io/crosswatch/test/functions/respond"
	"github.com/crosswatch-io/crosswatch/test/installation"
	"github.com/crosswatch-io/crosswatch/test/soak"
)

func TestMain(m *testing.M) {
	if kubeconfig, ok := os.LookupEnv(kubeconfigEnv); ok {
		if err := operate(kubeconfig); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	ctrl.SetLogger(logr.Discard())
	os.Exit(m.Run())
}

func TestTheOperatorMissesNothing(t *testing.T) {
	soakOperator(t, soak.Seed(t), 20*time.Second)
}

func TestSoakTheOperator(t *testing.T) {
	soakOperator(t, soak.Seed(t), soak.Time(t))
}

// xrs is how many XRs of a kind there can be: so few that the API server has time for
// more than what they write.
const xrs = 12

// trial is one run: a script and the cluster it tries.
type trial struct {
	t       *testing.T
	seed    uint64
	ended   bool // as it was meant to
	cluster *cluster
	objects *objects
	script  *soak.Script
	until   time.Time
	rests   int
	resting time.Duration
	longest time.Duration // rest
	suffers int
	missed  int
}

func soakOperator(t *testing.T, seed uint64, length time.Duration) {
	s := &trial{t: t, seed: seed}
	var err error
	s.cluster, err = newCluster(t.Context(), seed)
	t.Cleanup(func() {
		if err := s.cluster.end(); err != nil {
			t.Error(err)
		}
	})
	s.must(err)
	s.objects = newObjects(t.Context(), s.cluster.kinds.objects)
	defer s.objects.close()
	s.script = soak.NewScript(seed, s.objects)
	s.script.XRs = xrs
	defer s.report()
	for s.until = time.Now().Add(length); s.goesOn(); {
		s.stretch()
		s.rest()
	}
	s.ended = true
}

func (s *trial) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// goesOn says that there is time left, and no reason to end before.
func (s *trial) goesOn() bool { return s.missed == 0 && time.Now().Before(s.until) }

// stretch is a time of changes: mostly so few of them that none hides what another
// should have done, sometimes many, and often with a fault.
func (s *trial) stretch() {
	switch at := s.script.Rand.IntN(100); {
	case at < 55:
		s.change(1 + s.script.Rand.IntN(300))
	case at < 60:
		s.change(5_000)
	default:
		s.suffer(1 + s.script.Rand.IntN(1_500))
	}
}

func (s *trial) change(times int) {
	for i := 0; i < times && s.goesOn(); i++ {
		s.script.Change()
	}
	if s.script.Rand.IntN(2) == 0 {
		s.script.Touch()
	}
	s.must(s.objects.flush())
}

// suffer changes things before, during and after a fault.
func (s *trial) suffer(times int) {
	s.suffers++
	s.change(times / 3)
	heal, err := s.fault()(s.t.Context())
	s.must(err)
	s.change(times / 3)
	s.must(heal())
	s.change(times / 3)
}

// rest waits until each XR says what the model says, and counts those that don't.
func (s *trial) rest() {
	s.t.Helper()
	s.rests++
	began := time.Now()
	model := soak.Model{Objects: map[schema.GroupVersionKind][]*unstructured.Unstructured{}, Unreadable: s.cluster.kinds.unreadable}
	s.must(s.look(model, soak.ThingKinds, soak.RareKinds))
	var wrong []*unstructured.Unstructured
	err := eventually("all XRs to say what there is", func() (bool, error) {
		err := s.look(model, soak.XRKinds, []string{soak.ComposedKind})
		wrong = s.wrong(model)
		return len(wrong) == 0, err
	})
	s.objects.reset(soak.ComposedKind, s.cluster.kinds.withdrawn[soak.ComposedKind], model.Objects[soak.GVK(soak.ComposedKind)])
	s.resting += time.Since(began)
	s.longest = max(s.longest, time.Since(began))
	if err == nil {
		s.cluster.server.Reset()
		return
	}
	s.missed += max(1, len(wrong))
	s.t.Errorf("%v after %d changes; withdrawn: %v, forbidden: %v", err, s.objects.changes(), s.cluster.kinds.withdrawn, s.cluster.kinds.forbidden)
	for _, xr := range wrong {
		s.t.Error(s.describe(model, xr))
	}
}

// look tells the model what objects there are of some kinds.
func (s *trial) look(model soak.Model, kinds ...[]string) error {
	for _, kind := range slices.Concat(kinds...) {
		there, err := s.cluster.kinds.now(s.t.Context(), kind)
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
		model.Objects[soak.GVK(kind)] = there
	}
	return nil
}

// wrong returns the XRs that don't say, or compose, what they should.
func (s *trial) wrong(model soak.Model) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, kind := range soak.XRKinds {
		for _, xr := range model.Objects[soak.GVK(kind)] {
			composed := composedOf(xr, soak.PlanOf(xr))
			if s.saidBy(xr) != model.Expected(xr, composed) || s.leftover(model, xr, composed) {
				out = append(out, xr)
			}
		}
	}
	return out
}

// leftover says that there is something the XR composed and does not any more. An XR
// that sees nothing deletes nothing.
func (s *trial) leftover(model soak.Model, xr *unstructured.Unstructured, composed []string) bool {
	return s.saidBy(xr) != soak.Blind && slices.ContainsFunc(model.Objects[soak.GVK(soak.ComposedKind)], func(obj *unstructured.Unstructured) bool {
		return strings.Contains(obj.GetName(), string(xr.GetUID())) && !slices.Contains(composed, obj.GetName())
	})
}

// describe says what is wrong with an XR.
func (s *trial) describe(model soak.Model, xr *unstructured.Unstructured) string {
	plan := soak.PlanOf(xr)
	return fmt.Sprintf("%s %s says %q, want %q\nplan: %+v\nstatus: %v\nwas last shown: %s\nand there is: %s",
		xr.GetKind(), nameOf(xr), s.saidBy(xr), model.Expected(xr, composedOf(xr, plan)), plan, xr.Object["status"], s.shown(xr), there(model, xr))
}

// shown lists what the function was last asked about an XR.
func (s *trial) shown(xr *unstructured.Unstructured) string {
	var versions []string
	for _, req := range s.cluster.server.Requests(nameOf(xr)) {
		if respond.Observed(req)["kind"] != xr.GetKind() {
			continue
		}
		versions = nil
		for _, found := range req.GetRequiredResources() {
			for _, item := range found.GetItems() {
				versions = append(versions, versionOf(&unstructured.Unstructured{Object: item.GetResource().AsMap()}))
			}
		}
	}
	slices.Sort(versions)
	return strings.Join(versions, ", ")
}

// there lists what there is of what an XR's plan requires first.
func there(model soak.Model, xr *unstructured.Unstructured) string {
	var versions []string
	for _, want := range soak.PlanOf(xr).Requires {
		for _, obj := range soak.Selected(model.Objects[soak.GVK(want.Kind)], want.Reference()) {
			versions = append(versions, versionOf(obj))
		}
	}
	slices.Sort(versions)
	return strings.Join(versions, ", ")
}

func versionOf(obj *unstructured.Unstructured) string {
	return fmt.Sprintf("%s %s at %s", obj.GetKind(), nameOf(obj), obj.GetResourceVersion())
}

// saidBy returns what an XR says.
func (s *trial) saidBy(xr *unstructured.Unstructured) string {
	switch {
	case xr.GetDeletionTimestamp() != nil:
		return "nothing: it is to go"
	case !isSynced(xr):
		return soak.Blind
	case xr.GetKind() != soak.SilentKind:
		return soak.SawOf(xr)
	}
	said, _ := s.cluster.witness.said.Load(xr.GetUID())
	text, _ := said.(string)
	return text
}

func isSynced(xr *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(xr.Object, "status", "conditions")
	for _, c := range conditions {
		if m, ok := c.(map[string]any); ok && m["type"] == "Synced" {
			return m["status"] == "True"
		}
	}
	return false
}

// report says what came of it, and fails if the operators' own checks found anything.
func (s *trial) report() {
	s.t.Helper()
	found := 0
	for _, r := range s.cluster.replicas {
		log, err := os.ReadFile(r.log)
		if err != nil {
			s.t.Error(err)
		}
		found += bytes.Count(log, []byte("not woken for a change"))
		if s.t.Failed() {
			s.t.Logf("%s ends with:\n%s", r.log, log[max(0, len(log)-4000):])
		}
	}
	if found > 0 {
		s.t.Errorf("the operators' own checks found %d XRs that were not woken", found)
	}
	s.t.Logf("%d faults; came to rest %d times, which took %s, %s at most; the lease changed hands %s times",
		s.suffers, s.rests, s.resting.Round(time.Second), s.longest.Round(time.Millisecond), s.leaders())
	if !s.ended {
		s.t.Log("it did not come to its end: what follows does not say that nothing was missed")
	}
	soak.Report(s.objects.changes(), s.missed+found, s.seed)
}

// leaders is how often another replica became the leader.
func (s *trial) leaders() string {
	leases := &coordinationv1.LeaseList{}
	if err := s.cluster.Admin.List(context.WithoutCancel(s.t.Context()), leases, client.InNamespace(installation.Namespace)); err != nil {
		return err.Error()
	}
	for _, lease := range leases.Items {
		if n := lease.Spec.LeaseTransitions; n != nil {
			return strconv.Itoa(int(*n))
		}
	}
	return "0"
}
