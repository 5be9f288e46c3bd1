// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package watchstatus

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/crosswatch-io/crosswatch/api/apiextensions/v1"
	commonv1 "github.com/crosswatch-io/crosswatch/api/common/v1"
	"github.com/crosswatch-io/crosswatch/internal/engine"
)

// Engine knows the XR controllers, each named after its XRD, and the watches in service.
type Engine interface {
	Controllers() []*engine.Controller
	Watches() []engine.WatchInfo
}

// factsOf returns what is known of each XRD whose XR controller runs, or is about to: after a start of the operator it takes a
// moment until those of established XRDs do, and until then nothing is converged.
func factsOf(xrds []v1.CompositeResourceDefinition, controllers []*engine.Controller, watches []engine.WatchInfo) []Facts {
	running := make(map[string]*engine.Controller, len(controllers))
	for _, c := range controllers {
		running[c.Name()] = c
	}
	active := map[schema.GroupVersionKind]bool{}
	for _, w := range watches {
		active[w.GVK] = w.State == engine.Active
	}

	all := make([]Facts, 0, len(xrds))
	for i := range xrds {
		f := Facts{XRD: xrds[i].Name, Kind: xrds[i].GetCompositeGroupVersionKind()}
		c, ok := running[f.XRD]
		switch {
		case ok:
			f.Kind = c.Kind()
			f.Synced = active[f.Kind]
			f.Known, f.Settled = c.Known()
			f.Stats = c.Tracker().Stats()
		case xrds[i].Status.GetCondition(commonv1.TypeEstablished).Status != corev1.ConditionTrue:
			continue
		}
		all = append(all, f)
	}
	return all
}
