// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package outage

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crosswatch-io/crosswatch/test/faults"
)

func TestOutageOf5Seconds(t *testing.T) { outage(t, 5*time.Second) }

func TestSoakOutageOf2Minutes(t *testing.T) {
	long(t)
	outage(t, 2*time.Minute)
}

// outage makes the API server unreachable for at least that time, until the operator
// says so where it can be asked.
func outage(t *testing.T, lasts time.Duration) {
	m := newMirrors(t)
	began := time.Now()
	cluster.proxy.Down()
	t.Cleanup(func() { m.must(cluster.proxy.Up()) })
	m.upheaval()
	m.says()
	m.upheaval()
	m.always("the operator says that it is blind", lasts-time.Since(began), m.isBlind)
	m.must(cluster.proxy.Up())
	m.converges()
}

// says waits until the operator admits that it sees nothing.
func (m *mirrors) says() {
	m.t.Helper()
	m.eventually("the operator to say that it is blind", m.isBlind)
	if ok, body := ready(m.t); ok || !strings.Contains(body, "[-]api-server failed") {
		m.t.Errorf("the readiness probe does not blame the API server:\n%s", body)
	}
}

// isBlind is whether the operator says that it is not ready, and that no watch works.
func (m *mirrors) isBlind() (bool, string) {
	m.t.Helper()
	ok, _ := ready(m.t)
	active := m.watches("Active")
	return !ok && active == 0, fmt.Sprintf("ready is %t, and %d watches are Active", ok, active)
}

func TestSoakTheAPIServerRestartsWithTheSameData(t *testing.T) {
	long(t)
	m := newMirrors(t)
	m.must(cluster.Plane.StopAPIServer())
	m.must(cluster.Plane.StartAPIServer(t.Context()))
	m.upheaval()
	m.converges()
}

func TestFlappingFor5Seconds(t *testing.T) { flapping(t, 5*time.Second) }

func TestSoakFlappingFor30Seconds(t *testing.T) {
	long(t)
	flapping(t, 30*time.Second)
}

// flapping takes the API server away and brings it back every few hundred
// milliseconds.
func flapping(t *testing.T, lasts time.Duration) {
	m := newMirrors(t)
	stop, done := make(chan struct{}), make(chan error, 1)
	go func() { done <- flap(stop) }()
	for began := time.Now(); time.Since(began) < lasts; {
		m.upheaval()
	}
	close(stop)
	m.must(<-done)
	m.converges()
}

func flap(stop <-chan struct{}) error {
	const down, up = 300 * time.Millisecond, 200 * time.Millisecond
	for {
		cluster.proxy.Down()
		<-time.After(down)
		if err := cluster.proxy.Up(); err != nil {
			return err
		}
		select {
		case <-stop:
			return nil
		case <-time.After(up):
		}
	}
}

// What is slow is neither blind nor unready, and gets there all the same.
func TestEveryRequestTakesTwoSecondsLonger(t *testing.T) {
	m := newMirrors(t)
	slow := cluster.proxy.Inject(faults.Fault{Delay: 2 * time.Second})
	t.Cleanup(slow.Heal)
	cluster.proxy.Cut(faults.Regularly, nil)
	m.upheaval()
	m.always("the operator is ready, and watches", 4*time.Second, func() (bool, string) {
		ok, body := ready(t)
		watching := m.condition(statuses, m.name, "Watching")
		return ok && watching["status"] == "True", body + fmt.Sprint(watching)
	})
	m.converges()
	if slow.Hits() == 0 {
		t.Error("no request was slow")
	}
}

func TestA429Storm(t *testing.T) {
	m := newMirrors(t)
	storm := cluster.proxy.Inject(faults.Fault{Status: http.StatusTooManyRequests, RetryAfter: time.Second, Share: 0.8})
	t.Cleanup(storm.Heal)
	cluster.proxy.Cut(faults.Abruptly, nil)
	for began := time.Now(); time.Since(began) < 3*time.Second; {
		m.upheaval()
	}
	storm.Heal()
	m.converges()
	if storm.Hits() == 0 {
		t.Error("no request was refused")
	}
}

// While the API server refuses a kind's watch and answers all else, the API itself
// is where that is told.
func TestAWatchThatIsRefusedIsToldOf(t *testing.T) {
	m := newMirrors(t)
	refused := cluster.proxy.Inject(faults.Fault{Status: http.StatusTooManyRequests, On: faults.Resource("", "configmaps")})
	t.Cleanup(refused.Heal)
	cluster.proxy.Cut(faults.MidObject, faults.Resource("", "configmaps"))
	m.upheaval()
	c := m.is(statuses, m.name, "Watching", "False")
	if message, _ := c["message"].(string); c["reason"] != "WatchesFailed" || !strings.Contains(message, `kind "ConfigMap" of v1 (Failed: `) {
		t.Errorf("Watching does not say which watch failed: %v", c)
	}
	if ok, body := ready(t); !ok {
		t.Errorf("the operator is not ready although the API server answers:\n%s", body)
	}
	refused.Heal()
	m.converges()
}

// After a restart, with the same data, the API server remembers no resource version
// from before it, and etcd has none of them any more.
func TestEveryResourceVersionExpiresByACompactionAndARestart(t *testing.T) {
	m := newMirrors(t)
	before := &corev1.ConfigMapList{}
	m.must(m.admin.List(t.Context(), before))
	cluster.proxy.Down()
	t.Cleanup(func() { m.must(cluster.proxy.Up()) })
	m.upheaval()
	m.must(cluster.Plane.CompactEtcd(t.Context()))
	m.must(cluster.Plane.StopAPIServer())
	m.must(cluster.Plane.StartAPIServer(t.Context()))
	m.hasExpired(before.ResourceVersion)
	m.must(cluster.proxy.Up())
	m.converges()
}

// hasExpired fails the test unless a watch can't go on from the version.
func (m *mirrors) hasExpired(version string) {
	m.t.Helper()
	w, err := m.admin.Watch(m.t.Context(), &corev1.ConfigMapList{}, &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: version}})
	if err == nil {
		defer w.Stop()
		event := <-w.ResultChan()
		if event.Type != watch.Error {
			m.t.Fatalf("a watch from version %s goes on, with %s", version, event.Type)
		}
		err = apierrors.FromObject(event.Object)
	}
	if !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
		m.t.Fatalf("a watch from version %s ends with %v, want that it expired", version, err)
	}
}
