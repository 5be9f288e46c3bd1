// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	v1 "github.com/crosswatch-io/crosswatch/api/apiextensions/v1"
	pkgv1 "github.com/crosswatch-io/crosswatch/api/pkg/v1"
	"github.com/crosswatch-io/crosswatch/api/watch/v1alpha1"
)

// The ClusterRoles whose rules follow from the XRDs. They are installed without rules, the first bound to the operator.
const (
	// RoleComposites lets the operator work with XRs.
	RoleComposites = "crosswatch-composites"
	// RoleView and RoleEdit let those view and edit XRs who may view and edit other things.
	RoleView = "crosswatch-composites-view"
	RoleEdit = "crosswatch-composites-edit"
)

// resources are the XR kinds of one API group, by their plural names.
type resources struct {
	group   string
	plurals []string
}

// resourcesOf returns what the XRDs define, sorted.
func resourcesOf(xrds []*v1.CompositeResourceDefinition) []resources {
	plurals := map[string][]string{}
	for _, xrd := range xrds {
		plurals[xrd.Spec.Group] = append(plurals[xrd.Spec.Group], xrd.Spec.Names.Plural)
	}
	all := make([]resources, 0, len(plurals))
	for _, group := range slices.Sorted(maps.Keys(plurals)) {
		all = append(all, resources{group: group, plurals: slices.Sorted(slices.Values(plurals[group]))})
	}
	return all
}

// rulesOf returns a role's rules about all the resources. They are the same for the same XRDs in any order.
func rulesOf(all []resources, rules func(resources) []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	out := make([]rbacv1.PolicyRule, 0, 2*len(all))
	for _, r := range all {
		out = append(out, rules(r)...)
	}
	return out
}

func operatorRules(r resources) []rbacv1.PolicyRule {
	parts := make([]string, 0, 2*len(r.plurals))
	for _, plural := range r.plurals {
		parts = append(parts, plural+"/status", plural+"/finalizers")
	}
	return []rbacv1.PolicyRule{
		rule(r.group, r.plurals, "get", "list", "watch", "create", "update", "patch", "delete"),
		rule(r.group, parts, "get", "update", "patch"),
	}
}

func viewRules(r resources) []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{rule(r.group, r.plurals, "get", "list", "watch")}
}

func editRules(r resources) []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{rule(r.group, r.plurals, "get", "list", "watch", "create", "update", "patch", "delete")}
}

func rule(group string, resources []string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: verbs}
}

// ruleText writes rules as they are written in a manifest, in one line.
func ruleText(rules []rbacv1.PolicyRule) string {
	texts := make([]string, 0, len(rules))
	for _, r := range rules {
		texts = append(texts, fmt.Sprintf("{apiGroups: [%s], resources: [%s], verbs: [%s]}",
			strings.Join(r.APIGroups, ", "), strings.Join(r.Resources, ", "), strings.Join(r.Verbs, ", ")))
	}
	return strings.Join(texts, " and ")
}

// reservedGroups are the groups of the operator's own kinds, and reservedDomains those of Kubernetes. An XRD there would make the
// operator, and all who may edit XRs, more powerful than anybody meant. The admission policy in config/rbac says the same.
var (
	reservedGroups  = []string{v1.GroupVersion.Group, pkgv1.GroupVersion.Group, v1alpha1.GroupVersion.Group}
	reservedDomains = []string{"k8s.io", "kubernetes.io"}
)

// mayDefine is an error if no rule is ever made for what the XRD defines.
func mayDefine(xrd *v1.CompositeResourceDefinition) error {
	group, plural := xrd.Spec.Group, xrd.Spec.Names.Plural
	switch {
	case xrd.Name != plural+"."+group:
		return fmt.Errorf("the XRD's name must be %q, which is spec.names.plural and spec.group", plural+"."+group)
	case len(validation.IsDNS1035Label(plural)) > 0:
		return fmt.Errorf("spec.names.plural %q is no DNS label", plural)
	case len(validation.IsDNS1123Subdomain(group)) > 0 || !strings.Contains(group, "."):
		return fmt.Errorf("spec.group %q is no DNS name with a dot in it", group)
	case isReserved(group):
		return fmt.Errorf("spec.group %q is reserved for kinds of Kubernetes or of the operator itself: use a group of your own domain", group)
	}
	return nil
}

func isReserved(group string) bool {
	return slices.Contains(reservedGroups, group) || slices.ContainsFunc(reservedDomains, func(domain string) bool {
		return group == domain || strings.HasSuffix(group, "."+domain)
	})
}
