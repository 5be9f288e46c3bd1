// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/crosswatch-io/crosswatch/internal/engine"
	"github.com/crosswatch-io/crosswatch/internal/store"
)

// limited returns the access of a user who may do nothing yet, and a grant of
// verbs on a resource of an API group to that user, which can be taken back.
func limited(t *testing.T, user string) (cfg *rest.Config, grant func(group, resource string, verbs ...string) (revoke func())) {
	t.Helper()
	c := newClient(t)
	user = fmt.Sprintf("%s-%d", user, time.Now().UnixNano())
	cfg = rest.CopyConfig(admin)
	cfg.Impersonate.UserName = user
	return cfg, func(group, resource string, verbs ...string) func() {
		t.Helper()
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{GenerateName: user + "-"}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs},
		}}
		must(t, c.Create(t.Context(), role))
		binding := &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: role.Name},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		}
		must(t, c.Create(t.Context(), binding))
		return func() {
			t.Helper()
			must(t, c.Delete(t.Context(), binding))
			must(t, c.Delete(t.Context(), role))
		}
	}
}

// Case A7: what is missing is said by verb, kind and rule, it holds nobody up, and
// is over as soon as it is granted.
func TestA7AKindThatIsForbiddenIsReportedAtOnceAndRecoversOnceItIsGranted(t *testing.T) {
	cfg, grant := limited(t, "a7")
	w := newWorld(t, cfg)
	grant("coordination.k8s.io", "leases", "list", "watch")
	ns := w.namespace()
	c := w.start("xrs", leases)
	w.state(leases, engine.Active)

	const rule = "add {apiGroups: [\"\"], resources: [configmaps], verbs: [get, list, watch]}"
	for range 3 {
		begin := time.Now()
		_, err := c.Require(t.Context(), someXR, requires(named(configMaps, ns, "a")))
		if took := time.Since(begin); took > time.Second {
			t.Errorf("the run was held for %s", took)
		}
		refusedTo(t, err, "list", `kind "ConfigMap" of v1`, rule)
		c.Fail(someXR)
	}
	_, err := c.Require(t.Context(), otherXR, requires(named(leases, ns, "b")))
	must(t, err)
	w.create(leases, ns, "b", nil)
	w.expect(otherXR)
	w.ranBefore(c, marker)

	grant("", "configmaps", "list")
	w.expect(someXR)
	_, err = c.Require(t.Context(), someXR, requires(named(configMaps, ns, "a")))
	refusedTo(t, err, "watch", rule)
	grant("", "configmaps", "watch")
	w.expect(someXR)
	w.state(configMaps, engine.Active)
}

func refusedTo(t *testing.T, err error, verb string, says ...string) {
	t.Helper()
	var watchErr *engine.WatchError
	if !errors.As(err, &watchErr) || watchErr.State != engine.Forbidden {
		t.Fatalf("got %v, want a WatchError that says Forbidden", err)
	}
	for _, words := range append(says, "the operator may not "+verb+" it") {
		if !strings.Contains(err.Error(), words) {
			t.Errorf("the error lacks %q: %v", words, err)
		}
	}
}

// An open watch is not looked at again: only the end that each watch has finds
// out.
func TestARevocationIsNoticedWhenTheWatchIsDueToBeginAgain(t *testing.T) {
	cfg, grant := limited(t, "revoked")
	w := newWorld(t, cfg, func(c *engine.Config) { c.Timing = store.Timing{Watch: 4 * time.Second} })
	grant("coordination.k8s.io", "leases", "list", "watch")
	revoke := grant("", "configmaps", "list", "watch")
	c := w.start("xrs", leases)
	_, _ = c.Require(t.Context(), someXR, requires(named(configMaps, "default", "a")))
	w.state(configMaps, engine.Active)
	w.ranBefore(c, marker)

	revoke()
	w.state(configMaps, engine.Forbidden)
	w.expect(someXR)
	grant("", "configmaps", "list", "watch")
	w.engine.RulesChanged()
	w.state(configMaps, engine.Active)
	w.expect(someXR)
}

func TestARunThatWasRefusedSomethingIsRepeatedWhenTheRulesChange(t *testing.T) {
	w := newWorld(t, admin)
	c := w.start("xrs", leases)
	w.state(leases, engine.Active)
	c.Enqueue(someXR, otherXR)
	w.expect(someXR, otherXR)

	c.Refused(someXR)
	w.engine.RulesChanged()
	w.expectOnly(c, someXR, otherXR)
	w.engine.RulesChanged()
	if slices.Contains(w.ranBefore(c, marker), someXR) {
		t.Error("the run was repeated although nothing was refused again")
	}
}
