// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"context"
	"fmt"
	"path"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	v1 "github.com/crosswatch-io/crosswatch/api/apiextensions/v1"
	"github.com/crosswatch-io/crosswatch/internal/apifault"
)

// Discovery is behind for a moment where a CRD has just gone. An aggregated API must not hold a worker up for longer than the other
// time.
const (
	discoverySettles = 2 * time.Second
	discoveryTimeout = 5 * time.Second
)

// vacancies knows whose XR kinds nobody else serves. That there is no CRD does not tell: the objects of an aggregated API have
// none, and whoever may create XRDs must not get at them by giving an XRD their name. It can be used concurrently.
type vacancies struct {
	api   rest.Interface
	clock clock.PassiveClock

	mu sync.Mutex
	// found are XRDs whose kind was found vacant, or is their own. What was found holds for as long as the XRD is there.
	found map[types.UID]bool
	// asked is when the API server was first asked about an XRD.
	asked map[types.UID]time.Time
}

func newVacancies(api rest.Interface, passive clock.PassiveClock) *vacancies {
	return &vacancies{api: api, clock: passive, found: map[types.UID]bool{}, asked: map[types.UID]time.Time{}}
}

// isFound reports whether the XRD's kind was found vacant, without asking for it.
func (v *vacancies) isFound(xrd *v1.CompositeResourceDefinition) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.found[xrd.UID]
}

// add notes that the XRD's kind is its own: it controls a CRD, or nobody serves the kind.
func (v *vacancies) add(xrd *v1.CompositeResourceDefinition) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.found[xrd.UID] = true
	delete(v.asked, xrd.UID)
}

// retain forgets all XRDs but these.
func (v *vacancies) retain(xrds []v1.CompositeResourceDefinition) {
	there := make(map[types.UID]bool, len(xrds))
	for i := range xrds {
		there[xrds[i].UID] = true
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	for uid := range v.found {
		if !there[uid] {
			delete(v.found, uid)
		}
	}
	for uid := range v.asked {
		if !there[uid] {
			delete(v.asked, uid)
		}
	}
}

// find asks the API server, once for each XRD, whether somebody serves the kind of the XRD, which has no CRD. It is a *denial if
// somebody does, or if that can't be known.
func (v *vacancies) find(ctx context.Context, xrd *v1.CompositeResourceDefinition) error {
	if v.isFound(xrd) {
		return nil
	}
	group, plural := xrd.Spec.Group, xrd.Spec.Names.Plural
	version, err := v.servedIn(ctx, group, plural)
	switch {
	case err != nil:
		return &denial{
			reason: ReasonWaitingForPermission,
			message: fmt.Sprintf("the operator does not grant itself %q in API group %q, since it is not known whether somebody else serves that: %s",
				plural, group, apifault.Text(err)),
			settling: v.isSettling(xrd),
		}
	case version != "":
		return &denial{
			reason: ReasonNotControlled,
			message: fmt.Sprintf("APIService %q serves %q in API group %q, and not from a CRD: rename the XR kind, or delete that APIService",
				version+"."+group, plural, group),
			settling: v.isSettling(xrd),
		}
	}
	v.add(xrd)
	return nil
}

// isSettling reports whether the XRD was first asked about a moment ago.
func (v *vacancies) isSettling(xrd *v1.CompositeResourceDefinition) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	first, ok := v.asked[xrd.UID]
	if !ok {
		first = v.clock.Now()
		v.asked[xrd.UID] = first
	}
	return v.clock.Since(first) < discoverySettles
}

// servedIn returns a version of the API group in which the resource is served, empty if there is none. RBAC does not tell versions
// apart, so each counts. It is an error if one of them can't be read.
func (v *vacancies) servedIn(ctx context.Context, group, resource string) (version string, err error) {
	known := &metav1.APIGroup{}
	switch err := v.read(ctx, path.Join("/apis", group), known); {
	case apierrors.IsNotFound(err):
		return "", nil
	case err != nil:
		return "", err
	}
	for _, version := range known.Versions {
		list := &metav1.APIResourceList{}
		if err := v.read(ctx, path.Join("/apis", group, version.Version), list); err != nil {
			return "", fmt.Errorf("%w; mend or delete APIService %q", err, version.Version+"."+group)
		}
		if slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == resource }) {
			return version.Version, nil
		}
	}
	return "", nil
}

func (v *vacancies) read(ctx context.Context, from string, into runtime.Object) error {
	if err := v.api.Get().AbsPath(from).Timeout(discoveryTimeout).Do(ctx).Into(into); err != nil {
		return fmt.Errorf("cannot read %s: %w", from, err)
	}
	return nil
}
