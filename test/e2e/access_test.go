// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/crosswatch-io/crosswatch/api/apiextensions/v1"
	fnv1 "github.com/crosswatch-io/crosswatch/api/fn/v1"
	watchv1alpha1 "github.com/crosswatch-io/crosswatch/api/watch/v1alpha1"
	"github.com/crosswatch-io/crosswatch/cmd/crosswatch/app"
	"github.com/crosswatch-io/crosswatch/test/functions/respond"
	"github.com/crosswatch-io/crosswatch/test/installation"
)

const (
	roleComposites = "crosswatch-composites"
	roleView       = "crosswatch-composites-view"
	roleEdit       = "crosswatch-composites-edit"
)

func clusterRole(name string) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func (w *world) rulesOf(role string) []rbacv1.PolicyRule {
	w.t.Helper()
	r := clusterRole(role)
	w.must(w.admin.Get(w.t.Context(), key(r), r))
	return r.Rules
}

// grants returns the verbs that the role's rules have for a resource of the tests' group.
func (w *world) grants(role, resource string) []string {
	w.t.Helper()
	var verbs []string
	for _, r := range w.rulesOf(role) {
		if slices.Contains(r.APIGroups, group) && slices.Contains(r.Resources, resource) {
			verbs = append(verbs, r.Verbs...)
		}
	}
	return verbs
}

// requests returns the operator's requests of this test about a resource, in all its groups, and those of them that were refused.
func (w *world) requests(resource string) (all, forbidden []auditv1.Event) {
	w.t.Helper()
	isAbout := func(entry *auditv1.Event) bool {
		return isOperators(entry) && entry.ObjectRef != nil && entry.ObjectRef.Resource == resource
	}
	all, err := w.auditLog.Entries(isAbout)
	w.must(err)
	// Found by the word, as at the end of all tests: those that want refusals would miss them if entries lacked it.
	forbidden, err = w.auditLog.Entries(func(entry *auditv1.Event) bool { return isAbout(entry) && isRefusal(entry) }, refusal)
	w.must(err)
	return all, forbidden
}

// as is a client with the rights of somebody else.
func (w *world) as(cfg *rest.Config) client.Client {
	w.t.Helper()
	c, err := client.New(cfg, client.Options{Scheme: cluster.Scheme, Mapper: w.admin.RESTMapper()})
	w.must(err)
	return c
}

// user is a client with the rights of a user who has only that role: in the test's namespace, or everywhere.
func (w *world) user(name, role string, everywhere bool) client.Client {
	w.t.Helper()
	name = w.namespace + "-" + name
	subjects := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: name}}
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}
	if everywhere {
		w.create(&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, Subjects: subjects, RoleRef: ref})
	} else {
		w.create(&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}, Subjects: subjects, RoleRef: ref})
	}
	cfg := cluster.Plane.AdminConfig()
	cfg.Impersonate.UserName = name
	return w.as(cfg)
}

// grant lets the operator do something, as platforms do.
func (w *world) grant(rules ...rbacv1.PolicyRule) {
	w.t.Helper()
	role := clusterRole(w.namespace + "-" + rules[0].Resources[0])
	role.Labels = map[string]string{"crosswatch.io/aggregate-to-crosswatch": "true"}
	role.Rules = rules
	w.create(role)
}

// allowed and refused are conditions for eventually, of a request that is tried again until RBAC knows what was just granted.
func allowed(try func() error) func() (bool, string) {
	return func() (bool, string) {
		err := try()
		return err == nil, fmt.Sprint(err)
	}
}

func refused(try func() error, words ...string) func() (bool, string) {
	return func() (bool, string) {
		err := try()
		lacks := func(words string) bool { return !strings.Contains(err.Error(), words) }
		return apierrors.IsForbidden(err) && !slices.ContainsFunc(words, lacks), fmt.Sprint(err)
	}
}

func TestTheXRKindsOfAnXRDAreGrantedWithItAndRevokedWhenItGoes(t *testing.T) {
	w := newWorld(t)
	w.operate()
	w.function("reader", reader)
	const plural = "granteds"
	kind := w.define("Granted")
	w.compose(kind, step("reader", nil))
	xr := w.xr(kind, "xr", nil)
	w.ready(xr)

	read, all := []string{"get", "list", "watch"}, []string{"get", "list", "watch", "create", "update", "patch", "delete"}
	want := map[string][]string{
		roleComposites + " " + plural:                 all,
		roleComposites + " " + plural + "/status":     {"get", "update", "patch"},
		roleComposites + " " + plural + "/finalizers": {"get", "update", "patch"},
		roleView + " " + plural:                       read,
		roleEdit + " " + plural:                       all,
	}
	got := map[string][]string{}
	for _, role := range []string{roleComposites, roleView, roleEdit} {
		for _, resource := range []string{plural, plural + "/status", plural + "/finalizers", plural + "/scale", "*"} {
			if verbs := w.grants(role, resource); verbs != nil {
				got[role+" "+resource] = verbs
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what the roles grant (-want +got):\n%s", diff)
	}

	w.remove(definition("Granted", v1.ScopeNamespaced, anyFields))
	for _, role := range []string{roleComposites, roleView, roleEdit} {
		w.eventually(role+" to grant nothing any more", func() (bool, string) {
			verbs := w.grants(role, plural)
			return verbs == nil, fmt.Sprint(verbs)
		})
	}
	requests, forbidden := w.requests(plural)
	if len(requests) == 0 {
		t.Error("the audit log has no request about the XRs")
	}
	if len(forbidden) > 0 {
		t.Errorf("the API server refused requests about the XRs: %v", forbidden)
	}
}

// The roles are written again and again meanwhile, and RBAC must never be behind what the operator does.
func TestManyXRDsComeAndGoWithoutARefusedRequest(t *testing.T) {
	w := newWorld(t)
	w.operate()
	var xrds []*v1.CompositeResourceDefinition
	for i := range 8 {
		xrd := definition(fmt.Sprintf("Crowd%d", i), v1.ScopeNamespaced, anyFields)
		w.create(xrd)
		xrds = append(xrds, xrd)
	}
	for _, xrd := range xrds {
		w.condition(xrd, "Established", "True", "WatchingCompositeResource")
	}
	for _, xrd := range xrds {
		w.must(w.admin.Delete(t.Context(), xrd))
	}
	for _, xrd := range xrds {
		w.remove(xrd)
		w.eventually("the grant to go", func() (bool, string) {
			verbs := w.grants(roleEdit, xrd.Spec.Names.Plural)
			return verbs == nil, fmt.Sprint(verbs)
		})
		requests, forbidden := w.requests(xrd.Spec.Names.Plural)
		if len(requests) == 0 || len(forbidden) > 0 {
			t.Errorf("%s: of %d requests, these were refused: %v", xrd.Name, len(requests), forbidden)
		}
	}
	if _, forbidden := w.requests("clusterroles"); len(forbidden) > 0 {
		t.Errorf("the API server refused writes of roles: %v", forbidden)
	}
}

func TestAnXRDOfAReservedGroupIsRefusedAndGrantsNothing(t *testing.T) {
	w := newWorld(t)
	w.operate()
	w.define("Harmless")
	xrd := definition("Harmful", v1.ScopeNamespaced, anyFields)
	xrd.Name, xrd.Spec.Group = "harmfuls.apps.k8s.io", "apps.k8s.io"
	w.create(xrd)
	if message := w.condition(xrd, "Established", "False", "InvalidDefinition"); !strings.Contains(message, `"apps.k8s.io" is reserved`) {
		t.Errorf("the message does not say why: %s", message)
	}
	w.define("Later") // whose grant is not held up
	for _, rule := range w.rulesOf(roleComposites) {
		if slices.Contains(rule.APIGroups, xrd.Spec.Group) {
			t.Errorf("the operator was granted %v", rule)
		}
	}
}

// An XRD of the name of a CRD that is not its own must not hand that CRD's objects to whoever may edit XRs.
func TestAnXRDGrantsNothingOfACRDThatIsNotItsOwn(t *testing.T) {
	w := newWorld(t)
	w.operate()
	xrd := definition("Gadget", v1.ScopeNamespaced, anyFields)
	w.create(xrd)
	w.condition(xrd, "Established", "False", "NotControlled")
	w.define("Beside")
	for _, role := range []string{roleComposites, roleView, roleEdit} {
		if verbs := w.grants(role, "gadgets"); verbs != nil {
			t.Errorf("%s grants %v of gadgets", role, verbs)
		}
	}
}

// aggregate has the API server forward an API group to a server of the test's, which serves projects in its version v1. The
// function returns what that was asked so far.
func (w *world) aggregate(group string) (service *unstructured.Unstructured, asked func() []string) {
	w.t.Helper()
	var mu sync.Mutex
	var paths []string
	server := httptest.NewTLSServer(http.HandlerFunc(func(rw http.ResponseWriter, req *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		paths = append(paths, req.URL.Path)
		rw.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(rw, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"%s/v1","resources":[`+
			`{"name":"projects","kind":"Project","namespaced":true,"verbs":["get","list","delete"]}]}`, group)
	}))
	w.t.Cleanup(server.Close)
	port := server.Listener.Addr().(*net.TCPAddr).Port

	w.create(&corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "aggregated"},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost"},
	})
	service = &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"group": group, "version": "v1", "groupPriorityMinimum": int64(1000), "versionPriority": int64(10), "insecureSkipTLSVerify": true,
		"service": map[string]any{"namespace": w.namespace, "name": "aggregated", "port": int64(port)},
	}}}
	service.SetAPIVersion("apiregistration.k8s.io/v1")
	service.SetKind("APIService")
	service.SetName("v1." + group)
	w.create(service)
	return service, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(paths)
	}
}

// An aggregated API has no CRDs that would tell that its objects are somebody else's.
func TestAnXRDGrantsNothingOfAnAggregatedAPI(t *testing.T) {
	w := newWorld(t)
	w.operate()
	const group = "aggregated.crosswatch.io"
	service, asked := w.aggregate(group)
	w.eventually("the aggregated API to be served", func() (bool, string) {
		content, err := w.raw(t.Context(), "/apis/"+group+"/v1")
		return err == nil && strings.Contains(content, "projects"), fmt.Sprint(content, err)
	})
	xrd := definition("Project", v1.ScopeNamespaced, anyFields)
	xrd.Name, xrd.Spec.Group = "projects."+group, group
	w.create(xrd)
	if message := w.condition(xrd, "Established", "False", "NotControlled"); !strings.Contains(message, `APIService "v1.aggregated.crosswatch.io" serves "projects"`) {
		t.Errorf("the message does not say who serves the kind: %s", message)
	}
	w.grantsNothingIn(group)

	w.remove(xrd.DeepCopy())
	for _, path := range asked() {
		if strings.Contains(path, "projects") {
			t.Errorf("the aggregated API was asked for %s", path)
		}
	}
	xrd.ResourceVersion = ""
	w.create(xrd)
	w.condition(xrd, "Established", "False", "NotControlled")
	w.remove(service)
	w.condition(xrd, "Established", "True", "WatchingCompositeResource")
}

// An API server that does not answer may serve anything.
func TestAnXRDGrantsNothingOfAnAPIGroupThatDoesNotAnswer(t *testing.T) {
	w := newWorld(t)
	w.operate()
	const group = "unreachable.crosswatch.io"
	service := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"group": group, "version": "v1", "groupPriorityMinimum": int64(1000), "versionPriority": int64(10),
		"service": map[string]any{"namespace": w.namespace, "name": "absent"},
	}}}
	service.SetAPIVersion("apiregistration.k8s.io/v1")
	service.SetKind("APIService")
	service.SetName("v1." + group)
	w.create(service)
	w.eventually("the API group to be known", func() (bool, string) {
		content, err := w.raw(t.Context(), "/apis/"+group)
		return err == nil, fmt.Sprint(content, err)
	})
	xrd := definition("Project", v1.ScopeNamespaced, anyFields)
	xrd.Name, xrd.Spec.Group = "projects."+group, group
	w.create(xrd)
	if message := w.condition(xrd, "Established", "False", "WaitingForPermission"); !strings.Contains(message, `delete APIService "v1.unreachable.crosswatch.io"`) {
		t.Errorf("the message does not say what does not answer: %s", message)
	}
	w.grantsNothingIn(group)
	w.remove(service)
	w.condition(xrd, "Established", "True", "WatchingCompositeResource")
}

// raw returns what the API server answers to a GET by an administrator.
func (w *world) raw(ctx context.Context, path string) (string, error) {
	w.t.Helper()
	c, err := discovery.NewDiscoveryClientForConfig(cluster.Plane.AdminConfig())
	w.must(err)
	content, err := c.RESTClient().Get().AbsPath(path).DoRaw(ctx)
	return string(content), err
}

func (w *world) grantsNothingIn(group string) {
	w.t.Helper()
	w.define("Following") // whose grant comes after
	for _, role := range []string{roleComposites, roleView, roleEdit} {
		for _, rule := range w.rulesOf(role) {
			if slices.Contains(rule.APIGroups, group) {
				w.t.Errorf("%s grants %v", role, rule)
			}
		}
	}
}

func TestAHandEditOfTheRulesIsCorrected(t *testing.T) {
	w := newWorld(t)
	w.operate()
	w.define("Kept")
	for _, name := range []string{roleComposites, roleView, roleEdit} {
		want := w.rulesOf(name)
		update(w, clusterRole(name), func(r *rbacv1.ClusterRole) {
			r.Rules = []rbacv1.PolicyRule{{APIGroups: []string{"example.org"}, Resources: []string{"others"}, Verbs: []string{"get"}}}
		})
		w.promptly(name+"'s correction", func() {}, func() (bool, string) {
			diff := cmp.Diff(want, w.rulesOf(name))
			return diff == "", diff
		})
	}
}

func TestApplyingTheManifestsAgainKeepsTheRules(t *testing.T) {
	w := newWorld(t)
	op := w.operate()
	w.define("Lasting")
	op.stop() // or it would correct them
	want := w.rulesOf(roleComposites)
	if len(want) == 0 {
		t.Fatal("there are no rules to be kept")
	}
	for _, flags := range [][]string{{"--server-side"}, {"--server-side", "--force-conflicts"}, {}} {
		apply := append([]string{"apply", "-k", "../../config/rbac"}, flags...)
		_, err := cluster.Plane.Kubectl(t.Context(), apply...)
		w.must(err)
		if diff := cmp.Diff(want, w.rulesOf(roleComposites)); diff != "" {
			t.Errorf("after kubectl %q (-want +got):\n%s", apply, diff)
		}
	}
	w.operate() // or the XRD would stay
}

func TestWithoutItsRoleTheOperatorSaysWhatIsMissingAndWorksWithWhatElseItMay(t *testing.T) {
	w := newWorld(t)
	w.operate()
	w.unshare() // or the operator would be refused what it does with the XRs
	w.must(w.admin.Delete(t.Context(), clusterRole(roleComposites)))
	t.Cleanup(func() { w.must(cluster.Plane.ApplyKustomize(cleanupContext(t), "../../config/rbac")) })
	xrd := definition("Orphaned", v1.ScopeNamespaced, anyFields)
	w.create(xrd)
	message := w.condition(xrd, "Established", "False", "WaitingForPermission")
	for _, words := range []string{
		"{apiGroups: [" + group + "], resources: [orphaneds], verbs: [get, list, watch, create, update, patch, delete]}",
		"{apiGroups: [" + group + "], resources: [orphaneds/status, orphaneds/finalizers], verbs: [get, update, patch]}",
		`ClusterRole "crosswatch-composites" is not there: apply config/rbac again`,
	} {
		if !strings.Contains(message, words) {
			t.Errorf("the message lacks %q: %s", words, message)
		}
	}
	if _, forbidden := w.requests("orphaneds"); len(forbidden) > 0 {
		t.Errorf("the API server refused requests about the XRs: %v", forbidden)
	}

	w.grant(
		rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{"orphaneds"}, Verbs: []string{"list", "watch", "patch", "delete"}},
		rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{"orphaneds/status"}, Verbs: []string{"patch"}},
	)
	w.condition(xrd, "Established", "True", "WatchingCompositeResource")
	w.must(cluster.Plane.ApplyKustomize(t.Context(), "../../config/rbac"))
	w.eventually("the rules to be back", func() (bool, string) {
		verbs := w.grants(roleComposites, "orphaneds")
		return verbs != nil, fmt.Sprint(w.rulesOf(roleComposites))
	})
}

// What is refused here is what a stolen token of the operator could otherwise
// do with its right to escalate.
func TestThePolicyRefusesRulesThatNoXRKindNeeds(t *testing.T) {
	w := newWorld(t)
	cfg, err := cluster.OperatorConfig(t.Context())
	w.must(err)
	operator := w.as(cfg)
	apply := func(role, patch string) func() error {
		return func() error {
			return operator.Patch(t.Context(), clusterRole(role), client.RawPatch(types.MergePatchType, []byte(patch)), client.DryRunAll)
		}
	}
	rules := func(groups, resources, verbs string) string {
		return fmt.Sprintf(`{"rules":[{"apiGroups":[%q],"resources":[%q],"verbs":[%q]}]}`, groups, resources, verbs)
	}

	good := map[string]string{
		"main resource": rules("example.org", "rooms", "create"),
		"status":        rules("example.org", "rooms/status", "patch"),
		"finalizers":    rules("example.org", "rooms/finalizers", "update"),
		"one name":      `{"rules":[{"apiGroups":["example.org"],"resources":["rooms"],"resourceNames":["one"],"verbs":["get"]}]}`,
		"no rules":      `{"rules":[]}`,
	}
	for name, patch := range good {
		w.eventually(name+" to be allowed", allowed(apply(roleComposites, patch)))
	}

	bad := []struct {
		name, role, patch, says string
	}{
		{"any group", roleComposites, rules("*", "rooms", "get"), "API groups [*]"},
		{"core group", roleComposites, rules("", "secrets", "get"), "API groups []"},
		{"built-in group", roleComposites, rules("apps", "deployments", "get"), "API groups [apps]"},
		{"RBAC", roleComposites, rules("rbac.authorization.k8s.io", "clusterroles", "patch"), "API groups [rbac.authorization.k8s.io]"},
		{"CRDs", roleComposites, rules("apiextensions.k8s.io", "customresourcedefinitions", "get"), "API groups [apiextensions.k8s.io]"},
		{"kubernetes.io", roleComposites, rules("x.kubernetes.io", "rooms", "get"), "API groups [x.kubernetes.io]"},
		{"XRDs", roleComposites, rules("apiextensions.crossplane.io", "compositions", "get"), "API groups [apiextensions.crossplane.io]"},
		{"Functions", roleComposites, rules("pkg.crossplane.io", "functions", "get"), "API groups [pkg.crossplane.io]"},
		{"own kinds", roleComposites, rules("crosswatch.io", "dependencywatchstatuses", "get"), "API groups [crosswatch.io]"},
		{"second group", roleComposites, `{"rules":[{"apiGroups":["example.org","*"],"resources":["rooms"],"verbs":["get"]}]}`, "API groups [example.org, *]"},
		{"second rule", roleComposites, `{"rules":[{"apiGroups":["example.org"],"resources":["rooms"],"verbs":["get"]},` +
			`{"apiGroups":["batch"],"resources":["jobs"],"verbs":["get"]}]}`, "API groups [batch]"},
		{"any resource", roleComposites, rules("example.org", "*", "get"), "resources [*]"},
		{"any status", roleComposites, rules("example.org", "*/status", "get"), "resources [*/status]"},
		{"any subresource", roleComposites, rules("example.org", "rooms/*", "get"), "resources [rooms/*]"},
		{"scale", roleComposites, rules("example.org", "rooms/scale", "get"), "resources [rooms/scale]"},
		{"any verb", roleComposites, rules("example.org", "rooms", "*"), "verbs [*]"},
		{"deletecollection", roleComposites, rules("example.org", "rooms", "deletecollection"), "verbs [deletecollection]"},
		{"escalate", roleComposites, rules("example.org", "rooms", "escalate"), "verbs [escalate]"},
		{"delete of a status", roleComposites, rules("example.org", "rooms/status", "delete"), "verbs [delete]"},
		{"URLs", roleComposites, `{"rules":[{"nonResourceURLs":["/metrics"],"verbs":["get"]}]}`, "nonResourceURLs"},
		{"aggregation", roleComposites, `{"aggregationRule":{"clusterRoleSelectors":[{"matchLabels":{"a":"b"}}]}}`, "not aggregated"},
		{"labels", roleComposites, `{"metadata":{"labels":{"rbac.authorization.k8s.io/aggregate-to-view":"true"}}}`, "not its labels"},
		{"delete by viewers", roleView, rules(group, "gadgets", "delete"), "verbs [delete]"},
		{"any verb by editors", roleEdit, rules("example.org", "rooms", "*"), "attempting to grant"},
	}
	for _, tc := range bad {
		w.eventually(tc.name+" to be refused", refused(apply(tc.role, tc.patch), tc.says))
	}
}

// Where the operator goes by another name, the policy does not know it: so it trusts nobody with the rules.
func TestThePolicyChecksTheRulesWhoeverWritesThem(t *testing.T) {
	w := newWorld(t)
	apply := func(role, patch string) func() error {
		return func() error {
			return w.admin.Patch(t.Context(), clusterRole(role), client.RawPatch(types.MergePatchType, []byte(patch)), client.DryRunAll)
		}
	}
	const (
		secrets     = `{"rules":[{"apiGroups":[""],"resources":["secrets"],"verbs":["get"]}]}`
		aggregation = `{"aggregationRule":{"clusterRoleSelectors":[{"matchLabels":{"a":"b"}}]}}`
	)
	for _, role := range []string{roleComposites, roleView, roleEdit} {
		w.eventually(role+" to be kept from other rules", refused(apply(role, secrets), "API groups []"))
		w.eventually(role+" to be kept from aggregation", refused(apply(role, aggregation), "not aggregated"))
		w.eventually(role+" to be kept from URLs", refused(apply(role, `{"rules":[{"nonResourceURLs":["/metrics"],"verbs":["get"]}]}`), "nonResourceURLs"))
		// Who may view or edit XRs by which roles is for the platform to say.
		w.eventually(role+" to be labelled by a platform", allowed(apply(role, `{"metadata":{"labels":{"a":"b"}}}`)))
	}
}

// Even with all rights to RBAC objects the operator can't use them.
func TestThePolicyRefusesOtherWritesOfRBACObjects(t *testing.T) {
	w := newWorld(t)
	w.grant(rbacv1.PolicyRule{
		APIGroups: []string{rbacv1.GroupName},
		Resources: []string{"clusterroles", "clusterrolebindings", "roles", "rolebindings"},
		Verbs:     []string{"get", "create", "update", "patch", "delete", "bind", "escalate"},
	})
	cfg, err := cluster.OperatorConfig(t.Context())
	w.must(err)
	operator := w.as(cfg)
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"}
	namespaced := metav1.ObjectMeta{Namespace: w.namespace, Name: "new"}
	label := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`))

	writes := map[string]func() error{
		"create ClusterRole": func() error { return operator.Create(t.Context(), clusterRole("new"), client.DryRunAll) },
		"create Role": func() error {
			return operator.Create(t.Context(), &rbacv1.Role{ObjectMeta: namespaced}, client.DryRunAll)
		},
		"create RoleBinding": func() error {
			return operator.Create(t.Context(), &rbacv1.RoleBinding{ObjectMeta: namespaced, RoleRef: ref}, client.DryRunAll)
		},
		"create ClusterRoleBinding": func() error {
			return operator.Create(t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "new"}, RoleRef: ref}, client.DryRunAll)
		},
		"change its own role": func() error { return operator.Patch(t.Context(), clusterRole("crosswatch"), label, client.DryRunAll) },
		"change cluster-admin": func() error {
			return operator.Patch(t.Context(), clusterRole("cluster-admin"), label, client.DryRunAll)
		},
		"delete a role it keeps": func() error { return operator.Delete(t.Context(), clusterRole(roleComposites), client.DryRunAll) },
	}
	for what, write := range writes {
		w.eventually(what+" to be refused", refused(write, "ValidatingAdmissionPolicy 'crosswatch-rbac'", "no RBAC object but"))
	}
}

func TestUsersGetXRsByTheRolesViewAndEdit(t *testing.T) {
	w := newWorld(t)
	elsewhere := newWorld(t)
	w.operate()
	kind := w.shared(sample)
	w.compose(kind, step("absent", nil))
	w.xr(kind, "there", nil)
	viewer, editor := w.user("viewer", "view", false), w.user("editor", "edit", false)
	auditor := w.user("auditor", "view", true)

	get := func(c client.Client) func() error {
		return func() error { return c.Get(t.Context(), key(w.object(kind, "there")), w.object(kind, "there")) }
	}
	create := func(c client.Client, in *world) func() error {
		return func() error {
			xr := in.object(kind, "new")
			xr.Object["spec"] = map[string]any{}
			return c.Create(t.Context(), xr, client.DryRunAll)
		}
	}
	statusPatch := client.RawPatch(types.MergePatchType, []byte(`{"status":{"value":"forged"}}`))
	status := func() error { return editor.Status().Patch(t.Context(), w.object(kind, "there"), statusPatch) }
	read := func(c client.Client, list client.ObjectList) func() error {
		return func() error { return c.List(t.Context(), list) }
	}
	another := installation.Composition(kind, step("absent", nil))
	another.Name = "another"

	may := map[string]func() error{
		"view an XR with view":                        get(viewer),
		"view an XR with edit":                        get(editor),
		"create an XR with edit":                      create(editor, w),
		"create an XR with admin":                     create(w.user("admin", "admin", false), w),
		"view watch statuses with view everywhere":    read(auditor, &watchv1alpha1.DependencyWatchStatusList{}),
		"view XRDs with view everywhere":              read(auditor, &v1.CompositeResourceDefinitionList{}),
		"view Compositions with view everywhere":      read(auditor, &v1.CompositionList{}),
		"view CompositionRevisions, view everywhere":  read(auditor, &v1.CompositionRevisionList{}),
		"view an XR in any namespace with view there": get(auditor),
	}
	for what, try := range may {
		w.eventually("to be allowed to "+what, allowed(try))
	}
	mayNot := map[string]func() error{
		"create an XR with view":           create(viewer, w),
		"create an XR elsewhere with edit": create(editor, elsewhere),
		"write an XR's status with edit":   status,
		"create a Composition with edit":   func() error { return editor.Create(t.Context(), another.DeepCopy(), client.DryRunAll) },
		"create an XRD with edit":          func() error { return editor.Create(t.Context(), definition("Own", v1.ScopeCluster, anyFields)) },
		"create a Composition with everything": func() error {
			return w.user("all", "edit", true).Create(t.Context(), another.DeepCopy(), client.DryRunAll)
		},
	}
	for what, try := range mayNot {
		if ok, got := refused(try)(); !ok {
			t.Errorf("%s: want it to be forbidden, got %s", what, got)
		}
	}
}

func TestAKindThatIsNotGrantedIsForbiddenAndWorksAsSoonAsItIs(t *testing.T) {
	w := newWorld(t)
	w.provokesRefusals("cronjobs")
	address := w.freeAddress()
	w.operate(retryAfter(time.Hour), func(o *app.Options, _ *rest.Config) { o.HealthProbeBindAddress = address })
	w.function("planner", func(req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
		rsp := respond.To(req)
		respond.Require(rsp, "jobs", respond.Selector{APIVersion: "batch/v1", Kind: "CronJob"})
		respond.Ready(rsp, fnv1.Ready_READY_TRUE)
		return rsp, nil
	})
	kind := w.shared(sample)
	w.compose(kind, step("planner", nil))
	xr := w.xr(kind, "xr", nil)
	remedy := []string{
		"{apiGroups: [batch], resources: [cronjobs], verbs: [get, list, watch]}",
		"ClusterRole with the label crosswatch.io/aggregate-to-crosswatch=true",
	}
	w.fails(xr, append([]string{`"planner"`, "CronJob"}, remedy...)...)
	w.answers("http://"+address+"/readyz", "", http.StatusOK) // one kind makes nobody unready
	w.eventually("the watch to be Forbidden, with the remedy", func() (bool, string) {
		dws := statusOf(kind)
		w.must(client.IgnoreNotFound(w.admin.Get(t.Context(), key(dws), dws)))
		i := slices.IndexFunc(dws.Status.Kinds, func(k watchv1alpha1.KindStatus) bool { return k.Kind == "CronJob" })
		if i < 0 {
			return false, fmt.Sprint(dws.Status.Kinds)
		}
		k := dws.Status.Kinds[i]
		lacks := slices.ContainsFunc(remedy, func(words string) bool { return !strings.Contains(k.Message, words) })
		return k.Watch == watchv1alpha1.WatchForbidden && !lacks, fmt.Sprint(k)
	})

	// By then the next attempt is seconds away, so that only the grant itself can cause one.
	w.eventually("six attempts", func() (bool, string) {
		_, forbidden := w.requests("cronjobs")
		lists := slices.DeleteFunc(forbidden, func(r auditv1.Event) bool { return r.Verb != "list" })
		return len(lists) >= 6, strconv.Itoa(len(lists))
	})
	w.grant(rbacv1.PolicyRule{APIGroups: []string{"batch"}, Resources: []string{"cronjobs"}, Verbs: []string{"get", "list", "watch"}})
	took := w.eventually("the XR to be reconciled", func() (bool, string) {
		c := w.conditionOf(xr, "Synced")
		return c["status"] == "True", fmt.Sprint(c)
	})
	w.ready(xr)
	if took > 2*time.Second {
		t.Errorf("the grant took %s to work, want at most 2s", took.Round(time.Millisecond))
	}
}
