// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package function

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pkgv1 "github.com/crosswatch-io/crosswatch/api/pkg/v1"
	"github.com/crosswatch-io/crosswatch/api/pkg/v1beta1"
	"github.com/crosswatch-io/crosswatch/internal/composer"
	"github.com/crosswatch-io/crosswatch/internal/composer/fakeapi"
)

var accounts = corev1.SchemeGroupVersion.WithResource("serviceaccounts")

// sharedTest has a ServiceAccount that configurations name.
type sharedTest struct {
	t   *testing.T
	api *fakeapi.Server
}

func (s *sharedTest) account() *corev1.ServiceAccount {
	s.t.Helper()
	live := s.api.Get(accounts, testNamespace, "shared")
	if live == nil {
		return nil
	}
	account := &corev1.ServiceAccount{}
	if err := apiruntime.DefaultUnstructuredConverter.FromUnstructured(live.Object, account); err != nil {
		s.t.Fatal(err)
	}
	return account
}

// share applies what the configuration says of the account.
func (s *sharedTest) share(config string, labels, annotations map[string]string) {
	s.t.Helper()
	var there []client.Object
	if account := s.account(); account != nil {
		there = append(there, account)
	}
	c := newClient(s.t, there...)
	o := &objects{client: c, live: c, applier: composer.NewApplier(s.api), namespace: testNamespace}
	by := owner{kind: revisionKind, object: revisionOf(walls(imageOne), 1, pkgv1.RevisionActive)}
	want := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "shared", Labels: labels, Annotations: annotations}}
	if err := o.share(context.Background(), by, config, want); err != nil {
		s.t.Fatal(err)
	}
}

func (s *sharedTest) has(labels, annotations map[string]string) {
	s.t.Helper()
	account := s.account()
	if diff := cmp.Diff(labels, account.Labels); diff != "" {
		s.t.Errorf("labels (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(annotations, account.Annotations); diff != "" {
		s.t.Errorf("annotations (-want +got):\n%s", diff)
	}
}

func TestConfigurationsThatNameOneServiceAccountDoNotUndoEachOther(t *testing.T) {
	s := &sharedTest{t: t, api: fakeapi.New()}
	ours := map[string]string{LabelManagedBy: ManagedBy}
	s.share("one", nil, map[string]string{"role": "reader"})
	s.share("two", nil, nil)
	s.has(ours, map[string]string{"role": "reader"})
	s.share("two", nil, map[string]string{"region": "west"})
	s.has(ours, map[string]string{"role": "reader", "region": "west"})
	s.share("one", nil, nil)
	s.has(ours, map[string]string{"region": "west"})
}

func TestAServiceAccountThatWasThereKeepsItsLabels(t *testing.T) {
	s := &sharedTest{t: t, api: fakeapi.New()}
	there, err := untyped(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: testNamespace, Name: "shared"}},
		corev1.SchemeGroupVersion.WithKind("ServiceAccount"))
	if err != nil {
		t.Fatal(err)
	}
	s.api.Edit(accounts, there, "helm", func(account map[string]any) {
		account["metadata"].(map[string]any)["labels"] = map[string]any{LabelManagedBy: "Helm"}
	})
	s.share("one", map[string]string{"team": "a"}, nil)
	s.has(map[string]string{LabelManagedBy: "Helm", "team": "a"}, nil)
}

func TestARefusedObjectNamesItsConfiguration(t *testing.T) {
	large := &v1beta1.DeploymentRuntimeConfig{ObjectMeta: metav1.ObjectMeta{Name: "large"}}
	invalid := fmt.Errorf("cannot apply: %w", apierrors.NewInvalid(revisionKind.GroupKind(), "walls", nil))
	cases := map[string]struct {
		err    error
		config *v1beta1.DeploymentRuntimeConfig
		named  bool
	}{
		"Invalid":               {err: invalid, config: large, named: true},
		"Malformed":             {err: apierrors.NewBadRequest("no such field"), config: large, named: true},
		"ForAnotherReason":      {err: apierrors.NewServiceUnavailable("starting"), config: large},
		"WithoutAConfiguration": {err: invalid, config: &v1beta1.DeploymentRuntimeConfig{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := blamed(tc.err, tc.config)
			if !errors.Is(got, tc.err) || strings.Contains(got.Error(), `(DeploymentRuntimeConfig "large")`) != tc.named {
				t.Errorf("got %q, want the configuration named: %t", got, tc.named)
			}
		})
	}
	if err := blamed(nil, large); err != nil {
		t.Errorf("nothing failed, got error %v", err)
	}
}

func TestAnObjectThatIsSomebodyElsesIsLeftAlone(t *testing.T) {
	revision, another := revisionOf(walls(imageOne), 1, pkgv1.RevisionActive), revisionOf(walls(imageTwo), 2, pkgv1.RevisionActive)
	by := owner{kind: revisionKind, object: revision}
	cases := map[string]struct {
		cached bool // it carries our label
		owners []metav1.OwnerReference
		ours   bool
	}{
		"Nobodys":              {},
		"NobodysWithOurLabel":  {cached: true},
		"AnotherRevisions":     {cached: true, owners: []metav1.OwnerReference{*metav1.NewControllerRef(another, revisionKind)}},
		"OursThatLostItsLabel": {owners: []metav1.OwnerReference{*metav1.NewControllerRef(revision, revisionKind)}, ours: true},
		"Ours":                 {cached: true, owners: []metav1.OwnerReference{*metav1.NewControllerRef(revision, revisionKind)}, ours: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			there := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: testNamespace, Name: "walls", OwnerReferences: tc.owners}}
			live, cache, api := newClient(t, there), newClient(t), fakeapi.New()
			if tc.cached {
				cache = live
			}
			o := &objects{client: cache, live: live, applier: composer.NewApplier(api), namespace: testNamespace}
			err := o.apply(context.Background(), by, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "walls"}}, &corev1.Service{})
			if (err == nil) != tc.ours || (len(api.Writes()) > 0) != tc.ours {
				t.Errorf("apply: got error %v, want it written: %t", err, tc.ours)
			}
			if !tc.cached {
				return
			}
			if err := o.remove(context.Background(), by, &corev1.Service{}, "walls"); err != nil {
				t.Fatal(err)
			}
			err = live.Get(context.Background(), client.ObjectKeyFromObject(there), &corev1.Service{})
			if apierrors.IsNotFound(err) != tc.ours {
				t.Errorf("remove: got error %v, want it gone: %t", err, tc.ours)
			}
		})
	}
}
