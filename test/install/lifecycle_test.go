// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/crosswatch-io/crosswatch/cmd/crosswatch/app"
	"github.com/crosswatch-io/crosswatch/examples/scheduler/function/scheduler"
	"github.com/crosswatch-io/crosswatch/examples/scheduler/function/server"
	"github.com/crosswatch-io/crosswatch/test/controlplane"
)

const (
	exampleDir = "../../examples/scheduler/manifests"
	patience   = time.Minute
)

// site is a cluster of its own, on which a user installs, uses, upgrades and
// uninstalls the operator by the commands of the README.
type site struct {
	t     *testing.T
	plane *controlplane.ControlPlane
	stop  func() // the operator
}

func newSite(t *testing.T) *site {
	t.Helper()
	plane, err := controlplane.Start(t.Context(), controlplane.Config{ControllerManager: true})
	if err != nil {
		t.Fatal(err)
	}
	s := &site{t: t, plane: plane, stop: func() {}}
	t.Cleanup(func() {
		s.stop()
		if err := plane.Stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func (s *site) kubectl(args ...string) string {
	s.t.Helper()
	out, err := s.plane.Kubectl(s.t.Context(), args...)
	if err != nil {
		s.t.Fatal(err)
	}
	return out
}

// eventually waits until what kubectl prints is as wanted, and returns that.
func (s *site) eventually(isWanted func(string) bool, args ...string) string {
	s.t.Helper()
	var got string
	var failed error
	err := wait.PollUntilContextTimeout(s.t.Context(), 50*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		var out string
		if out, failed = s.plane.Kubectl(ctx, args...); failed == nil {
			got = strings.TrimSpace(out)
		}
		return failed == nil && isWanted(got), nil
	})
	if err != nil {
		s.t.Fatalf("gave up on kubectl %s, which printed %q last: %v", strings.Join(args, " "), got, failed)
	}
	return got
}

func is(want string) func(string) bool { return func(got string) bool { return got == want } }

// operate runs the operator with the rights of its ServiceAccount, in the place of
// the Deployment's pod.
func (s *site) operate() {
	s.t.Helper()
	cfg, err := s.plane.ServiceAccountConfig(s.t.Context(), namespace, name)
	if err != nil {
		s.t.Fatal(err)
	}
	o := app.NewOptions()
	o.HealthProbeBindAddress = "0"
	o.LogLevel = app.LogLevelError
	o.LeaderElect = true
	o.StatusInterval = time.Second
	o.AllowDevelopmentFunctions = true
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- app.Run(ctx, cfg, o) }()
	s.stop = func() {
		cancel()
		if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
			s.t.Errorf("the operator ended with an error: %v", err)
		}
		s.stop = func() {}
	}
}

// serveScheduler serves the example's function and returns its address.
func (s *site) serveScheduler() string {
	s.t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(s.t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- server.Serve(ctx, listener, scheduler.Server{}, server.Options{Insecure: true}) }()
	s.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			s.t.Errorf("the function ended with an error: %v", err)
		}
	})
	return listener.Addr().String()
}

// compose installs the example and makes one XR, which composes two replicas.
func (s *site) compose() {
	s.t.Helper()
	s.kubectl("apply", "-k", filepath.Join(exampleDir, "demo"))
	s.kubectl("annotate", "--overwrite", "functions.pkg.crossplane.io/scheduler",
		"render.crossplane.io/runtime-development-target="+s.serveScheduler())
	s.kubectl("wait", "--for=condition=Established", "--timeout=1m", "xrd/modeldeployments.inference.example.org")
	s.kubectl("apply", "-k", filepath.Join(exampleDir, "samples"))
	s.kubectl("apply", "-f", filepath.Join(exampleDir, "samples", "chat.yaml"))
	s.schedules(1)
	s.kubectl("wait", "--for=condition=Synced", "--timeout=1m", "-n", "team-a", "modeldeployment/chat")
	// The garbage collector learns of new kinds only twice a minute.
	if err := s.plane.RestartControllerManager(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
}

// schedules waits until that many of the XR's replicas have a cluster.
func (s *site) schedules(replicas int) {
	s.t.Helper()
	s.eventually(is(strconv.Itoa(replicas)), "get", "-n", "team-a", "modeldeployment/chat", "-o", "jsonpath={.status.scheduled}")
}

// converged waits until another operator than before says that it has seen every
// XR, and returns who it is.
func (s *site) converged(before string) string {
	s.t.Helper()
	said := s.eventually(func(got string) bool {
		leader, ok := strings.CutPrefix(got, "True ")
		return ok && leader != before
	}, "get", "dws/cluster", "-o", "jsonpath={.status.conditions[?(@.type=='Converged')].status} {.status.operator.leader}")
	return strings.TrimPrefix(said, "True ")
}

// state is what the example consists of, each with its resource version.
func (s *site) state() string {
	s.t.Helper()
	return s.kubectl("get", "-A", "modeldeployments,modelreplicas,compositionrevisions,crds,clusterroles", "-o",
		`jsonpath={range .items[*]}{.kind} {.metadata.name} {.metadata.resourceVersion}{"\n"}{end}`)
}

// delete deletes every object of config/default, whose kinds have been listed before.
//
// The API server looks through a kind before it removes the CRD. If nobody asked
// for that kind until then, it may find its own cache not ready yet, and tries
// again only after five minutes (seen with version 1.37). One that is being deleted
// already can't be listed for sure.
func (s *site) delete(flags ...string) {
	s.t.Helper()
	for _, crd := range strings.Split(strings.TrimSpace(s.kubectl("get", "crds", "-o", `jsonpath={range .items[*]}`+
		`/apis/{.spec.group}/{.spec.versions[?(@.storage==true)].name}/{.spec.names.plural} {.metadata.deletionTimestamp}{"\n"}{end}`)), "\n") {
		if list, deleted, _ := strings.Cut(crd, " "); deleted == "" {
			s.eventually(func(string) bool { return true }, "get", "--raw", list+"?resourceVersion=0")
		}
	}
	s.kubectl(append([]string{"delete", "-k", filepath.Join(configDir, "default"), "--ignore-not-found"}, flags...)...)
}

func TestUpgradeAndUninstall(t *testing.T) {
	s := newSite(t)
	s.kubectl("apply", "-k", filepath.Join(configDir, "default"))
	s.operate()
	s.compose()
	first := s.converged("")
	before := s.state()

	// An upgrade applies the manifests and restarts the operator: that changes
	// nothing of what there is, and the new one goes on with it.
	s.kubectl("apply", "-k", filepath.Join(configDir, "default"))
	s.stop()
	s.operate()
	s.converged(first)
	if diff := cmp.Diff(before, s.state()); diff != "" {
		t.Errorf("the upgrade changed something (-before +after):\n%s", diff)
	}
	s.kubectl("label", "inferencecluster", "west", "ready=true", "--overwrite")
	s.schedules(2)

	// Without the operator everything stays, but nothing follows any more.
	s.stop()
	s.kubectl("delete", "-n", namespace, "deployment/"+name)
	if got := len(strings.Fields(s.kubectl("get", "-A", "modelreplicas", "-o", "name", "-l", "crossplane.io/composite=chat"))); got != 2 {
		t.Errorf("%d replicas are left without the operator, want 2", got)
	}

	// Who deletes everything in the wrong order waits for an operator that is gone:
	// it has to be installed again.
	s.delete("--wait=false")
	s.kubectl("wait", "--for=delete", "--timeout=1m", "namespace/"+namespace)
	s.eventually(is("compositeresourcedefinitions.apiextensions.crossplane.io"), "get", "crds", "-o",
		`jsonpath={.items[?(@.metadata.deletionTimestamp)].metadata.name}`)
	s.kubectl("apply", "-k", filepath.Join(configDir, "default"))
	s.operate()

	// With the XRDs go their XRs and what those compose. What is left is only
	// what the user made.
	s.kubectl("delete", "xrd", "--all", "--timeout=1m")
	s.eventually(is("modelreplica.inference.example.org/notebook"), "get", "-A", "modelreplicas", "-o", "name")
	s.stop()
	// The XRDs' CRD was only waiting for them since the first attempt: it may be gone by now.
	s.delete("--timeout=2m")
	left := s.kubectl("get", "crds,namespaces,clusterroles,clusterrolebindings,flowschemas,priorityclasses,"+
		"validatingadmissionpolicies,validatingadmissionpolicybindings", "-o", "name")
	for _, object := range strings.Fields(left) {
		if strings.Contains(object, "crosswatch") && !strings.HasSuffix(object, "/crosswatch-example-scheduler") ||
			strings.Contains(object, "crossplane.io") {
			t.Errorf("left behind: %s", object)
		}
	}
}
