// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package watchstatus

import (
	"cmp"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/crosswatch-io/crosswatch/api/apiextensions/v1"
	commonv1 "github.com/crosswatch-io/crosswatch/api/common/v1"
	"github.com/crosswatch-io/crosswatch/internal/dependency"
	"github.com/crosswatch-io/crosswatch/internal/engine"
)

// Facts are what is known of one XRD.
type Facts struct {
	// XRD is the name of the definition.
	XRD string
	// Kind of the XRs.
	Kind schema.GroupVersionKind

	// Down says why no XR controller runs and none is about to; it is empty if one does or is.
	Down string
	// Vacant is whether there can be no XRs: no CRD defines their kind for this XRD. It is known only of one that is Down.
	Vacant bool

	// All below is zero while no XR controller runs.

	// Synced is whether all XRs are known, which they are not while the controller or its watch starts.
	Synced bool
	// Known is how many XRs there are, and Settled of how many of them it is known what they depend on.
	Known, Settled int
	// Stats of the controller's tracker.
	Stats dependency.Stats
}

func (f Facts) isConverged() bool { return f.Synced && f.Settled >= f.Known }

func (f Facts) notEstablished() string {
	return clip(fmt.Sprintf("XRD %q is not established: %s", f.XRD, f.Down), maxMessage)
}

// controller is what is asked of an engine.Controller.
type controller interface {
	Name() string
	Kind() schema.GroupVersionKind
	Tracker() *dependency.Tracker
	Known() (known, settled int)
}

// view is what one look at everything showed. The watches are looked up for every kind of every object, so that the map of them is
// made once.
type view struct {
	facts   []Facts // of each XRD
	watches []engine.WatchInfo
	byKind  watchesByKind
}

// look takes a look at each XRD, and at the watches in service. The order in which it does leaves no gap: a reference that a tracker
// holds has its watch by then, and of a watch that was active the XRs are known. hasCRD says whether the CRD that an XRD makes
// exists.
func look[C controller](xrds []*v1.CompositeResourceDefinition, controllers []C, watches func() []engine.WatchInfo,
	hasCRD func(*v1.CompositeResourceDefinition) (bool, error),
) (view, error) {
	running := make(map[string]C, len(controllers))
	for _, c := range controllers {
		running[c.Name()] = c
	}
	all := make([]Facts, 0, len(xrds))
	for _, xrd := range xrds {
		f := Facts{XRD: xrd.Name, Kind: xrd.GetCompositeGroupVersionKind()}
		if c, ok := running[xrd.Name]; ok {
			f.Kind, f.Stats = c.Kind(), c.Tracker().Stats()
		} else if f.Down = downOf(xrd); f.Down != "" {
			has, err := hasCRD(xrd)
			if err != nil {
				return view{}, err
			}
			f.Vacant = !has
		}
		all = append(all, f)
	}

	inService := watches()
	byKind := byKindOf(inService)
	for i, f := range all {
		if c, ok := running[f.XRD]; ok {
			all[i].Synced = byKind.isActive(f.Kind)
			all[i].Known, all[i].Settled = c.Known()
		}
	}
	return view{facts: all, watches: inService, byKind: byKind}, nil
}

// downOf says why the XRD has no XR controller. Right after a start of the operator those of established XRDs are about to run, and
// until they do nothing is converged.
func downOf(xrd *v1.CompositeResourceDefinition) string {
	established := xrd.Status.GetCondition(commonv1.TypeEstablished)
	if established.Status == corev1.ConditionTrue {
		return ""
	}
	return cmp.Or(established.Message, established.Reason, "the operator has not come to it yet")
}
