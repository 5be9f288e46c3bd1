// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
)

// TestControlPlane starts one control plane for everything that can be seen of
// it from outside, since a start takes seconds.
func TestControlPlane(t *testing.T) {
	defer goleak.VerifyNone(t)
	audit := filepath.Join(t.TempDir(), "audit.log")
	plane, err := Start(t.Context(), Config{
		ControllerManager: true,
		AuditLog:          audit,
		APIServerFlags:    map[string][]string{"max-mutating-requests-inflight": {"300"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer stopForGood(t, plane)
	if err := plane.ApplyKustomize(t.Context(), "testdata"); err != nil {
		t.Fatal(err)
	}

	t.Run("controllers", func(t *testing.T) {
		t.Run("OwnerReferenceDeletes", func(t *testing.T) {
			t.Parallel()
			ownerReferenceDeletes(t, plane)
		})
		t.Run("AggregatedRoleIsFilled", func(t *testing.T) {
			t.Parallel()
			aggregatedRoleIsFilled(t, plane)
		})
		t.Run("NamespaceFinishes", func(t *testing.T) {
			t.Parallel()
			namespaceFinishes(t, plane)
		})
		t.Run("ServiceAccountObeysRBAC", func(t *testing.T) {
			t.Parallel()
			serviceAccountObeysRBAC(t, plane)
		})
		t.Run("KubectlReportsErrors", func(t *testing.T) {
			t.Parallel()
			kubectlReportsErrors(t, plane)
		})
	})
	t.Run("NewKindIsCollectedAfterRestart", func(t *testing.T) { newKindIsCollected(t, plane) })
	t.Run("APIServerRestartsWithItsData", func(t *testing.T) { apiServerRestarts(t, plane) })
	t.Run("AuditLogHasEntries", func(t *testing.T) { auditLogHasEntries(t, audit) })
}

func ownerReferenceDeletes(t *testing.T, plane *ControlPlane) {
	configMaps := plane.client.CoreV1().ConfigMaps(metav1.NamespaceDefault)
	owner, err := configMaps.Create(t.Context(), configMap("owner"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	owned := configMap("owned")
	owned.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID}}
	if _, err := configMaps.Create(t.Context(), owned, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := configMaps.Delete(t.Context(), owner.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitGone(t, "the owned ConfigMap", func(ctx context.Context) error {
		_, err := configMaps.Get(ctx, owned.Name, metav1.GetOptions{})
		return err
	})
}

func aggregatedRoleIsFilled(t *testing.T, plane *ControlPlane) {
	want := []rbacv1.PolicyRule{{APIGroups: []string{"test.crosswatch.io"}, Resources: []string{"boxes"}, Verbs: []string{"get"}}}
	err := poll(t.Context(), "the aggregated role's rules", func(ctx context.Context) error {
		role, err := plane.client.RbacV1().ClusterRoles().Get(ctx, "boxes", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if diff := cmp.Diff(want, role.Rules); diff != "" {
			return fmt.Errorf("rules (-want +got):\n%s", diff)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func namespaceFinishes(t *testing.T, plane *ControlPlane) {
	const name = "finishing"
	createNamespace(t, plane, name)
	configMaps := plane.client.CoreV1().ConfigMaps(name)
	if _, err := configMaps.Create(t.Context(), configMap("inside"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	namespaces := plane.client.CoreV1().Namespaces()
	if err := namespaces.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitGone(t, "the namespace", func(ctx context.Context) error {
		_, err := namespaces.Get(ctx, name, metav1.GetOptions{})
		return err
	})
	left, err := configMaps.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(left.Items) != 0 {
		t.Errorf("%d ConfigMaps outlived their namespace", len(left.Items))
	}
}

// serviceAccountObeysRBAC goes by way of a kubeconfig, as the operator under
// test may.
func serviceAccountObeysRBAC(t *testing.T, plane *ControlPlane) {
	cfg, err := plane.ServiceAccountConfig(t.Context(), metav1.NamespaceDefault, "default")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := plane.WriteKubeconfig(path, cfg); err != nil {
		t.Fatal(err)
	}
	who, err := plane.Kubectl(t.Context(), "--kubeconfig="+path, "auth", "whoami", "-o", "jsonpath={.status.userInfo.username}")
	if err != nil {
		t.Fatal(err)
	}
	if want := "system:serviceaccount:default:default"; who != want {
		t.Errorf("the API server knows the service account as %q, want %q", who, want)
	}
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.CoreV1().Secrets("").List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("a service account without roles lists Secrets: %v, want Forbidden", err)
	}
	if _, err := plane.ServiceAccountConfig(t.Context(), metav1.NamespaceDefault, "none"); !apierrors.IsNotFound(err) {
		t.Errorf("token for a service account that does not exist: %v, want NotFound", err)
	}
}

func kubectlReportsErrors(t *testing.T, plane *ControlPlane) {
	_, err := plane.Kubectl(t.Context(), "get", "nonesuch")
	if err == nil || !strings.Contains(err.Error(), `doesn't have a resource type "nonesuch"`) {
		t.Errorf("kubectl get nonesuch: %v, want what kubectl says of it", err)
	}
}

func newKindIsCollected(t *testing.T, plane *ControlPlane) {
	if err := plane.RestartControllerManager(t.Context()); err != nil {
		t.Fatal(err)
	}
	client, err := dynamic.NewForConfig(plane.AdminConfig())
	if err != nil {
		t.Fatal(err)
	}
	boxes := client.Resource(schema.GroupVersionResource{Group: "test.crosswatch.io", Version: "v1", Resource: "boxes"}).Namespace(metav1.NamespaceDefault)
	outer, err := boxes.Create(t.Context(), box("outer"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	inner := box("inner")
	inner.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "test.crosswatch.io/v1", Kind: "Box", Name: "outer", UID: outer.GetUID()}})
	if _, err := boxes.Create(t.Context(), inner, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	foreground := metav1.DeletePropagationForeground
	if err := boxes.Delete(t.Context(), "outer", metav1.DeleteOptions{PropagationPolicy: &foreground}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"outer", "inner"} {
		awaitGone(t, "Box "+name, func(ctx context.Context) error {
			_, err := boxes.Get(ctx, name, metav1.GetOptions{})
			return err
		})
	}
}

func apiServerRestarts(t *testing.T, plane *ControlPlane) {
	cfg, err := plane.ServiceAccountConfig(t.Context(), metav1.NamespaceDefault, "default")
	if err != nil {
		t.Fatal(err)
	}
	createNamespace(t, plane, "lasting")
	if err := plane.StopAPIServer(); err != nil {
		t.Fatal(err)
	}
	requireSilent(t, plane)
	if err := plane.StartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := plane.client.CoreV1().Namespaces().Get(t.Context(), "lasting", metav1.GetOptions{}); err != nil {
		t.Errorf("a namespace does not outlive the API server's restart: %v", err)
	}
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.CoreV1().Secrets("").List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("with a token from before the restart: %v, want Forbidden, as its user is known", err)
	}
}

func auditLogHasEntries(t *testing.T, path string) {
	type entry struct {
		Level, Stage, Verb string
		ObjectRef          struct{ Resource, Name string }
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var got []entry
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var e entry
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatalf("line %q: %v", lines.Text(), err)
		}
		if e.Verb == "create" && e.ObjectRef.Name == "finishing" {
			got = append(got, e)
		}
	}
	want := entry{Level: "Metadata", Stage: "ResponseComplete", Verb: "create"}
	want.ObjectRef.Resource, want.ObjectRef.Name = "namespaces", "finishing"
	if diff := cmp.Diff([]entry{want}, got); diff != "" {
		t.Errorf("audit entries of the namespace's creation (-want +got):\n%s", diff)
	}
}

// TestDirOutlivesStop is about a folder that the caller chose, as for the demo.
func TestDirOutlivesStop(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "plane")
	plane, err := Start(t.Context(), Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if err := plane.RestartControllerManager(t.Context()); err == nil {
		t.Error("a controller manager that was not started restarts")
	}
	stopForGood(t, plane)
	for _, name := range []string{"admin.kubeconfig", "etcd.log", "kube-apiserver.log"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
}

func TestStartFails(t *testing.T) {
	assets := os.Getenv(assetsVariable)
	cases := map[string]struct {
		reason string
		assets string
		config Config
		want   string
	}{
		"NoBinaries": {
			reason: "who lacks the binaries needs to be told how to get them",
			assets: t.TempDir(),
			want:   "run `make controlplane`",
		},
		"RefusedFlag": {
			reason: "what the API server says of its end is all there is to go by",
			assets: assets,
			config: Config{APIServerFlags: map[string][]string{"nonesuch": {"true"}}},
			want:   "unknown flag: --nonesuch",
		},
		"DirIsAFile": {
			reason: "a folder that can't be made is named",
			assets: assets,
			config: Config{Dir: "doc.go"},
			want:   "doc.go",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Setenv(assetsVariable, tc.assets)
			plane, err := Start(t.Context(), tc.config)
			if err == nil {
				t.Errorf("%s: it starts: %v", tc.reason, plane.Stop())
				return
			}
			if !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: error %q does not contain %q", tc.reason, err, tc.want)
			}
		})
	}
}

// TestProcessesEndWithUs kills a process that runs a control plane, which this
// test binary is if the variable says so.
func TestProcessesEndWithUs(t *testing.T) {
	const variable = "CROSSWATCH_TEST_ABANDON"
	if os.Getenv(variable) != "" {
		abandon(t)
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestProcessesEndWithUs$", "-test.v")
	cmd.Env = append(os.Environ(), variable+"=true")
	output, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var host, dir string
	for lines := bufio.NewScanner(output); dir == "" && lines.Scan(); {
		_, _ = fmt.Sscanf(lines.Text(), abandoned, &host, &dir)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed, as it should be
	if dir == "" {
		t.Fatal("no control plane was started")
	}
	err = poll(t.Context(), "the abandoned control plane to end", func(ctx context.Context) error {
		if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("its folder is still there: %w", err)
		}
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", host)
		if err == nil {
			return errors.Join(errors.New("its API server still listens"), conn.Close())
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

const abandoned = "abandoned %s %s"

// abandon runs a control plane, says where, and waits to be killed.
func abandon(t *testing.T) {
	t.Helper()
	plane, err := Start(t.Context(), Config{})
	if err != nil {
		t.Fatal(err)
	}
	address, err := url.Parse(plane.AdminConfig().Host)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Printf(abandoned+"\n", address.Host, plane.dir)
	<-t.Context().Done()
}

// stopForGood also shows that a second Stop is harmless and nothing answers
// after the first.
func stopForGood(t *testing.T, plane *ControlPlane) {
	t.Helper()
	for range 2 {
		if err := plane.Stop(); err != nil {
			t.Error(err)
		}
	}
	requireSilent(t, plane)
}

func requireSilent(t *testing.T, plane *ControlPlane) {
	t.Helper()
	_, err := plane.client.Discovery().ServerVersion()
	if _, refused := errors.AsType[*net.OpError](err); !refused {
		t.Errorf("the API server after its stop: %v, want no connection", err)
	}
}

func awaitGone(t *testing.T, object string, get func(context.Context) error) {
	t.Helper()
	err := poll(t.Context(), object+" to be gone", func(ctx context.Context) error {
		err := get(ctx)
		switch {
		case apierrors.IsNotFound(err):
			return nil
		case err != nil:
			return err
		default:
			return errors.New("it is still there")
		}
	})
	if err != nil {
		t.Error(err)
	}
}

func createNamespace(t *testing.T, plane *ControlPlane, name string) {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := plane.client.CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func box(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "test.crosswatch.io/v1",
		"kind":       "Box",
		"metadata":   map[string]any{"name": name},
	}}
}
