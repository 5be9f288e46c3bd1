// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package outage

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/crosswatch-io/crosswatch/api/apiextensions/v1"
	"github.com/crosswatch-io/crosswatch/test/faults"
)

var definitions = schema.GroupVersionKind{
	Group: v1.GroupVersion.Group, Version: v1.GroupVersion.Version, Kind: v1.KindCompositeResourceDefinition,
}

// Case A2: a controller starts, and the watch of its XRs fails. Nobody claims that
// they are watched until they are.
func TestA2AWatchThatFailsAfterItsControllerStartedIsTriedAgain(t *testing.T) {
	w := newWorld(t, "Latecomer", mirror)
	fails := cluster.proxy.Inject(faults.Fault{Status: http.StatusInternalServerError, On: faults.Resource(group, "latecomers")})
	t.Cleanup(fails.Heal)
	w.define()
	w.eventually("the watch to fail", func() (bool, string) { return fails.Hits() > 0, "it was not tried" })
	w.always("nobody claims that the XRs are watched", time.Second, func() (bool, string) {
		established, watching := w.condition(definitions, w.name, "Established"), w.condition(statuses, w.name, "Watching")
		return established["status"] != "True" && watching["status"] != "True", fmt.Sprint(established, watching)
	})
	fails.Heal()

	xr := w.object(w.kind, "xr")
	xr.Object["spec"] = map[string]any{"settings": "missing", "color": "red"}
	w.first(xr)
	w.eventually("the XR to be composed", func() (bool, string) {
		value := fieldOf(w.list(w.kind)["xr"], "status", "value")
		return value == "none", value
	})
	w.is(definitions, w.name, "Established", "True")
	w.is(statuses, w.name, "Watching", "True")
}
