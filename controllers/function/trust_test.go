// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package function

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	commonv1 "github.com/crosswatch-io/crosswatch/api/common/v1"
	pkgv1 "github.com/crosswatch-io/crosswatch/api/pkg/v1"
	"github.com/crosswatch-io/crosswatch/internal/pki"
)

const day = 24 * time.Hour

// trustTest keeps the certificates of one revision.
type trustTest struct {
	t        *testing.T
	client   client.Client
	clock    *testclock.FakePassiveClock
	certs    *certificates
	trustee  *trustee
	revision *pkgv1.FunctionRevision
}

func newTrustTest(t *testing.T) *trustTest {
	t.Helper()
	fn := walls(imageOne)
	c, clock := newClient(t, fn), testclock.NewFakePassiveClock(start)
	certs := newCertificates(c, clock)
	return &trustTest{
		t: t, client: c, clock: clock, certs: certs,
		trustee:  &trustee{client: c, certificates: certs},
		revision: revisionOf(fn, 1, pkgv1.RevisionActive),
	}
}

// reconcile does what both controllers do now, and returns the shortest time after which they ask to be run again.
func (s *trustTest) reconcile() time.Duration {
	s.t.Helper()
	result, err := s.trustee.Reconcile(context.Background(), reconcile.Request{})
	if err != nil {
		s.t.Fatal(err)
	}
	_, wait, err := s.certs.serverSecret(context.Background(), s.revision)
	if err != nil {
		s.t.Fatal(err)
	}
	return sooner(result.RequeueAfter, wait)
}

func (s *trustTest) secret(name string) *corev1.Secret {
	s.t.Helper()
	secret := &corev1.Secret{}
	if err := s.client.Get(context.Background(), types.NamespacedName{Namespace: testNamespace, Name: name}, secret); err != nil {
		s.t.Fatal(err)
	}
	return secret
}

func (s *trustTest) ours() *corev1.Secret   { return s.secret(clientSecretName) }
func (s *trustTest) theirs() *corev1.Secret { return s.secret(serverSecretName(s.revision.Name)) }

// trusts fails unless who has the bundle of one Secret accepts the certificate of the other at that time.
func (s *trustTest) trusts(who, whom *corev1.Secret, request pki.Request) {
	s.t.Helper()
	pair := pki.Pair{Certificate: whom.Data[keyCertificate], Key: whom.Data[keyPrivate]}
	if _, err := request.Check(pair, pki.ParseBundle(who.Data[keyBundle]), s.clock.Now()); err != nil {
		s.t.Fatalf("at %s, who has Secret %q refuses the certificate of %q: %v", s.clock.Now(), who.Name, whom.Name, err)
	}
}

func TestTheCertificatesOfBothEndsFit(t *testing.T) {
	s := newTrustTest(t)
	s.reconcile()
	names := append(dnsNames("walls", testNamespace), dnsNames(s.revision.Name, testNamespace)...)
	s.trusts(s.ours(), s.theirs(), pki.Request{DNSNames: names, Use: x509.ExtKeyUsageServerAuth})
	s.trusts(s.theirs(), s.ours(), pki.Request{Use: x509.ExtKeyUsageClientAuth})
}

func TestNothingIsWrittenWhileNothingIsDue(t *testing.T) {
	s := newTrustTest(t)
	wait := s.reconcile()
	versions := func() [3]string {
		return [3]string{s.secret(AuthoritySecretName).ResourceVersion, s.ours().ResourceVersion, s.theirs().ResourceVersion}
	}
	before := versions()
	s.clock.SetTime(start.Add(wait - time.Second))
	s.reconcile()
	if after := versions(); after != before {
		t.Errorf("Secrets were written: versions %v, then %v", before, after)
	}
	s.clock.SetTime(start.Add(wait))
	s.reconcile()
	if after := versions(); after == before {
		t.Error("nothing was renewed when it was due")
	}
}

func TestWhatIsCorruptedOrDeletedIsReplaced(t *testing.T) {
	cases := map[string]func(*testing.T, *trustTest, *corev1.Secret){
		"NonsenseForACertificate": func(t *testing.T, s *trustTest, secret *corev1.Secret) {
			secret.Data[keyCertificate] = []byte("nonsense")
			update(t, s.client, secret)
		},
		"NonsenseForAKey": func(t *testing.T, s *trustTest, secret *corev1.Secret) {
			secret.Data[keyPrivate] = []byte("nonsense")
			update(t, s.client, secret)
		},
		"NoBundle": func(t *testing.T, s *trustTest, secret *corev1.Secret) {
			delete(secret.Data, keyBundle)
			update(t, s.client, secret)
		},
		"Deleted": func(t *testing.T, s *trustTest, secret *corev1.Secret) {
			if err := s.client.Delete(context.Background(), secret); err != nil {
				t.Fatal(err)
			}
		},
	}
	secrets := map[string]func(*trustTest) *corev1.Secret{
		"Ours": (*trustTest).ours, "Theirs": (*trustTest).theirs,
		"Authority": func(s *trustTest) *corev1.Secret { return s.secret(AuthoritySecretName) },
	}
	for what, corrupt := range cases {
		for whose, secret := range secrets {
			t.Run(what+whose, func(t *testing.T) {
				s := newTrustTest(t)
				s.reconcile()
				corrupt(t, s, secret(s))
				s.reconcile()
				s.trusts(s.ours(), s.theirs(), pki.Request{Use: x509.ExtKeyUsageServerAuth})
				s.trusts(s.theirs(), s.ours(), pki.Request{Use: x509.ExtKeyUsageClientAuth})
			})
		}
	}
}

func update(t *testing.T, c client.Client, object client.Object) {
	t.Helper()
	if err := c.Update(context.Background(), object); err != nil {
		t.Fatal(err)
	}
}

// TestBothEndsTrustEachOtherAtAnyTime lives through three authorities. A server that runs may have started with what its Secret held
// almost a day ago; the operator reads its own at each connection.
func TestBothEndsTrustEachOtherAtAnyTime(t *testing.T) {
	s := newTrustTest(t)
	s.certs.lifetimes = Lifetimes{Authority: 29 * day, Certificate: 3 * day, Succession: day}
	const step, late = 2 * time.Hour, 10 // steps after which a server has started anew
	var started []*corev1.Secret
	authorities := map[string]bool{}
	for now := start; now.Before(start.Add(60 * day)); now = now.Add(step) {
		s.clock.SetTime(now)
		s.reconcile()
		started = append(started, s.theirs())
		server := started[max(0, len(started)-1-late)]
		s.trusts(s.ours(), server, pki.Request{Use: x509.ExtKeyUsageServerAuth})
		s.trusts(server, s.ours(), pki.Request{Use: x509.ExtKeyUsageClientAuth})
		authorities[string(s.secret(AuthoritySecretName).Data[keyCertificate])] = true
	}
	if len(authorities) < 3 {
		t.Errorf("there were %d authorities in all this time, want 3 at least", len(authorities))
	}
	if n := len(pki.ParseBundle(s.ours().Data[keyBundle])); n > 3 {
		t.Errorf("%d authorities are trusted, although most have ended", n)
	}
}

// TestADeletedAuthorityStaysTrusted is about functions that run with what they started with.
func TestADeletedAuthorityStaysTrusted(t *testing.T) {
	s := newTrustTest(t)
	s.reconcile()
	server, ours := s.theirs(), s.ours()
	if err := s.client.Delete(context.Background(), s.secret(AuthoritySecretName)); err != nil {
		t.Fatal(err)
	}
	s.reconcile()
	s.trusts(s.ours(), server, pki.Request{Use: x509.ExtKeyUsageServerAuth})
	s.trusts(server, s.ours(), pki.Request{Use: x509.ExtKeyUsageClientAuth})
	if !bytes.Equal(ours.Data[keyCertificate], s.ours().Data[keyCertificate]) {
		t.Error("the operator's certificate was made anew, although it is good yet")
	}

	s.clock.SetTime(start.Add(DefaultLifetimes().Certificate - day))
	s.reconcile()
	server = s.theirs()
	s.trusts(s.ours(), server, pki.Request{Use: x509.ExtKeyUsageServerAuth})
	s.trusts(server, s.ours(), pki.Request{Use: x509.ExtKeyUsageClientAuth})
}

func TestWithoutFunctionsThereIsNoAuthority(t *testing.T) {
	c := newClient(t)
	r := &trustee{client: c, certificates: newCertificates(c, testclock.NewFakePassiveClock(start))}
	if _, err := r.Reconcile(context.Background(), reconcile.Request{}); err != nil {
		t.Fatal(err)
	}
	secrets := &corev1.SecretList{}
	if err := c.List(context.Background(), secrets); err != nil || len(secrets.Items) > 0 {
		t.Errorf("got %d Secrets, error %v", len(secrets.Items), err)
	}
}

func TestAServerWaitsForTheAuthority(t *testing.T) {
	s := newTrustTest(t)
	if _, _, err := s.certs.serverSecret(context.Background(), s.revision); !errors.Is(err, errNoAuthority) {
		t.Errorf("got error %v, want %v", err, errNoAuthority)
	}
}

// condition returns what the revision, which is made if it is not there, says of its runtime, and after what time it is looked at.
func (s *trustTest) condition() (commonv1.Condition, time.Duration) {
	s.t.Helper()
	if err := s.client.Create(context.Background(), s.revision.DeepCopy()); err != nil && !apierrors.IsAlreadyExists(err) {
		s.t.Fatal(err)
	}
	r := &runner{
		client: s.client, live: s.client, certificates: s.certs, clock: s.clock,
		objects: &objects{client: s.client, live: s.client, namespace: testNamespace},
	}
	// What went wrong is in the condition.
	result, _ := r.Reconcile(context.Background(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(s.revision)})
	after := &pkgv1.FunctionRevision{}
	if err := s.client.Get(context.Background(), client.ObjectKeyFromObject(s.revision), after); err != nil {
		s.t.Fatal(err)
	}
	return after.Status.GetCondition(commonv1.TypeRuntimeHealthy), result.RequeueAfter
}

func TestASecretThatIsSomebodyElsesIsLeftAlone(t *testing.T) {
	for _, name := range []string{clientSecretName, AuthoritySecretName} {
		t.Run(name, func(t *testing.T) {
			s := newTrustTest(t)
			theirs := &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: testNamespace, Name: name},
				Data:       map[string][]byte{keyCertificate: []byte("theirs")},
			}
			if err := s.client.Create(context.Background(), theirs); err != nil {
				t.Fatal(err)
			}
			if _, err := s.trustee.Reconcile(context.Background(), reconcile.Request{}); err == nil {
				t.Error("there is no error, so that it is not tried again")
			}
			if after := s.secret(name); after.ResourceVersion != theirs.ResourceVersion {
				t.Errorf("it was written: %v", after)
			}
			c, _ := s.condition()
			if want := fmt.Sprintf("cannot use Secret %q", name); !strings.Contains(c.Message, want) || !strings.Contains(c.Message, "delete it") {
				t.Errorf("the revision says %q, want it to say: %s, and what to do", c.Message, want)
			}
		})
	}
}

func TestAClockThatIsBehindIsSaidInOneWay(t *testing.T) {
	s := newTrustTest(t)
	s.reconcile()
	s.clock.SetTime(start.Add(-time.Hour))
	first, wait := s.condition()
	if want := time.Hour - pki.Backdate; wait != want {
		t.Errorf("the revision is looked at after %s, want %s", wait, want)
	}
	if want := "valid from 2025-12-31T23:55:00Z on"; !strings.Contains(first.Message, want) {
		t.Errorf("the revision says %q, want it to say: %s", first.Message, want)
	}
	before := s.ours().ResourceVersion
	s.clock.SetTime(start.Add(-time.Hour + time.Second))
	if second, _ := s.condition(); second.Message != first.Message {
		t.Errorf("a second later the revision says %q, before it was %q", second.Message, first.Message)
	}
	result, err := s.trustee.Reconcile(context.Background(), reconcile.Request{})
	if want := time.Hour - time.Second - pki.Backdate; err != nil || result.RequeueAfter != want {
		t.Errorf("the trustee asks to be run after %s, error %v, want %s", result.RequeueAfter, err, want)
	}
	if s.ours().ResourceVersion != before {
		t.Error("the operator's certificate was made anew, although none can be signed")
	}
}

func TestACertificateIsRenewedAlthoughTheConfigurationIsMissing(t *testing.T) {
	s := newTrustTest(t)
	s.revision.Spec.RuntimeConfigRef = &pkgv1.RuntimeConfigReference{Name: "missing"}
	s.reconcile()
	if c, wait := s.condition(); !strings.Contains(c.Message, `DeploymentRuntimeConfig "missing"`) || wait <= 0 {
		t.Errorf("the revision says %q, and is looked at after %s", c.Message, wait)
	}
	before := s.theirs()
	s.clock.SetTime(start.Add(DefaultLifetimes().Certificate - day))
	s.condition()
	if s.theirs().ResourceVersion == before.ResourceVersion {
		t.Error("its certificate is still the one that is about to end")
	}
}

func TestWhatAFunctionIsStartedAnewFor(t *testing.T) {
	secret := func(certificate, key, bundle string) *corev1.Secret {
		return &corev1.Secret{Data: map[string][]byte{keyCertificate: []byte(certificate), keyPrivate: []byte(key), keyBundle: []byte(bundle)}}
	}
	before := hashOf(secret("certificate", "key", "bundle"))
	if hashOf(secret("another", "key", "bundle")) == before {
		t.Error("it would go on with a certificate that was replaced")
	}
	if hashOf(secret("certificate", "key", "another")) == before {
		t.Error("it would go on without an authority that is to be trusted")
	}
	again := secret("certificate", "key", "bundle")
	again.Labels = map[string]string{"team": "a"}
	if hashOf(again) != before {
		t.Error("it would be started anew for a label")
	}
}

func TestAServersSecretThatIsSomebodyElsesIsLeftAlone(t *testing.T) {
	another := revisionOf(walls(imageTwo), 2, pkgv1.RevisionActive)
	cases := map[string][]metav1.OwnerReference{
		"Nobodys":          nil,
		"AnotherRevisions": {*metav1.NewControllerRef(another, revisionKind)},
	}
	for name, owners := range cases {
		t.Run(name, func(t *testing.T) {
			s := newTrustTest(t)
			theirs := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
				Namespace: testNamespace, Name: serverSecretName(s.revision.Name), OwnerReferences: owners,
				Labels: map[string]string{LabelManagedBy: ManagedBy},
			}}
			if err := s.client.Create(context.Background(), theirs); err != nil {
				t.Fatal(err)
			}
			if _, err := s.trustee.Reconcile(context.Background(), reconcile.Request{}); err != nil {
				t.Fatal(err)
			}
			if c, _ := s.condition(); !strings.Contains(c.Message, "is not this revision's: delete it") {
				t.Errorf("the revision says %q", c.Message)
			}
			if after := s.theirs(); after.ResourceVersion != theirs.ResourceVersion {
				t.Errorf("it was written: %v", after.Data)
			}
		})
	}
}

func TestARevisionSaysWhatItCanDo(t *testing.T) {
	s := newTrustTest(t)
	s.condition()
	after := &pkgv1.FunctionRevision{}
	if err := s.client.Get(context.Background(), client.ObjectKeyFromObject(s.revision), after); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"composition"}, after.Status.Capabilities); diff != "" {
		t.Errorf("capabilities (-want +got):\n%s", diff)
	}
}
