// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	rbacv1 "k8s.io/api/rbac/v1"

	v1 "github.com/crosswatch-io/crosswatch/api/apiextensions/v1"
)

// define returns an XRD of that name.
func define(name string) *v1.CompositeResourceDefinition {
	return roomXRD(v1.ScopeNamespaced, func(xrd *v1.CompositeResourceDefinition) {
		xrd.Name = name
		xrd.Spec.Names.Plural, xrd.Spec.Group, _ = strings.Cut(name, ".")
	})
}

var rulesByRole = map[string]func(resources) []rbacv1.PolicyRule{RoleComposites: operatorRules, RoleView: viewRules, RoleEdit: editRules}

func TestRules(t *testing.T) {
	all, part, read := []string{"get", "list", "watch", "create", "update", "patch", "delete"}, []string{"get", "update", "patch"}, []string{"get", "list", "watch"}
	a, b := []string{"a.example.org"}, []string{"b.example.org"}
	both := []string{"desks", "rooms"}

	cases := map[string]struct {
		xrds                 []string
		operator, view, edit []rbacv1.PolicyRule
	}{
		"None": {},
		"One": {
			xrds: []string{"rooms.a.example.org"},
			operator: []rbacv1.PolicyRule{
				{APIGroups: a, Resources: []string{"rooms"}, Verbs: all},
				{APIGroups: a, Resources: []string{"rooms/status", "rooms/finalizers"}, Verbs: part},
			},
			view: []rbacv1.PolicyRule{{APIGroups: a, Resources: []string{"rooms"}, Verbs: read}},
			edit: []rbacv1.PolicyRule{{APIGroups: a, Resources: []string{"rooms"}, Verbs: all}},
		},
		"SortedAndByGroup": {
			xrds: []string{"rooms.b.example.org", "rooms.a.example.org", "desks.a.example.org"},
			operator: []rbacv1.PolicyRule{
				{APIGroups: a, Resources: both, Verbs: all},
				{APIGroups: a, Resources: []string{"desks/status", "desks/finalizers", "rooms/status", "rooms/finalizers"}, Verbs: part},
				{APIGroups: b, Resources: []string{"rooms"}, Verbs: all},
				{APIGroups: b, Resources: []string{"rooms/status", "rooms/finalizers"}, Verbs: part},
			},
			view: []rbacv1.PolicyRule{{APIGroups: a, Resources: both, Verbs: read}, {APIGroups: b, Resources: []string{"rooms"}, Verbs: read}},
			edit: []rbacv1.PolicyRule{{APIGroups: a, Resources: both, Verbs: all}, {APIGroups: b, Resources: []string{"rooms"}, Verbs: all}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var xrds []*v1.CompositeResourceDefinition
			for _, xrd := range tc.xrds {
				xrds = append(xrds, define(xrd))
			}
			want := map[string][]rbacv1.PolicyRule{RoleComposites: tc.operator, RoleView: tc.view, RoleEdit: tc.edit}
			got := map[string][]rbacv1.PolicyRule{}
			for role, rules := range rulesByRole {
				got[role] = rulesOf(resourcesOf(xrds), rules)
			}
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("rules (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMayDefine(t *testing.T) {
	cases := map[string]struct {
		name, plural, group string
		want                string // empty if it may
	}{
		"Own":              {name: "rooms.example.org", plural: "rooms", group: "example.org"},
		"BesideReserved":   {name: "rooms.e2e.crosswatch.io", plural: "rooms", group: "e2e.crosswatch.io"},
		"OtherName":        {name: "rooms.example.org", plural: "certificates", group: "cert-manager.io", want: `must be "certificates.cert-manager.io"`},
		"EveryResource":    {name: "*.example.org", plural: "*", group: "example.org", want: `"*" is no DNS label`},
		"Subresource":      {name: "pods/exec.example.org", plural: "pods/exec", group: "example.org", want: `"pods/exec" is no DNS label`},
		"EveryGroup":       {name: "rooms.*", plural: "rooms", group: "*", want: `"*" is no DNS name`},
		"CoreGroup":        {name: "secrets.", plural: "secrets", group: "", want: `"" is no DNS name`},
		"BuiltInGroup":     {name: "deployments.apps", plural: "deployments", group: "apps", want: "no DNS name with a dot"},
		"RBAC":             {name: "roles.rbac.authorization.k8s.io", plural: "roles", group: "rbac.authorization.k8s.io", want: "reserved"},
		"DomainItself":     {name: "rooms.k8s.io", plural: "rooms", group: "k8s.io", want: "reserved"},
		"SimilarDomain":    {name: "rooms.myk8s.io", plural: "rooms", group: "myk8s.io"},
		"KubernetesDomain": {name: "rooms.a.kubernetes.io", plural: "rooms", group: "a.kubernetes.io", want: "reserved"},
		"Compositions":     {name: "compositions.apiextensions.crossplane.io", plural: "compositions", group: "apiextensions.crossplane.io", want: "reserved"},
		"Functions":        {name: "functions.pkg.crossplane.io", plural: "functions", group: "pkg.crossplane.io", want: "reserved"},
		"WatchStatuses":    {name: "x.crosswatch.io", plural: "x", group: "crosswatch.io", want: "reserved"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			xrd := define(tc.name)
			xrd.Spec.Names.Plural, xrd.Spec.Group = tc.plural, tc.group
			err := mayDefine(xrd)
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("want an error with %q, got %v", tc.want, err)
			}
		})
	}
}
