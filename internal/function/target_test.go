// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package function

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pkgv1 "github.com/crosswatch-io/crosswatch/api/pkg/v1"
)

func TestTheRevisionInForce(t *testing.T) {
	revision := func(name string, number int64, state pkgv1.RevisionDesiredState, endpoint string) pkgv1.FunctionRevision {
		return pkgv1.FunctionRevision{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       pkgv1.FunctionRevisionSpec{Revision: number, DesiredState: state},
			Status:     pkgv1.FunctionRevisionStatus{Endpoint: endpoint},
		}
	}
	const active, inactive = pkgv1.RevisionActive, pkgv1.RevisionInactive
	cases := map[string]struct {
		revisions []pkgv1.FunctionRevision
		want      string
	}{
		"None":                 {},
		"OnlyInactive":         {revisions: []pkgv1.FunctionRevision{revision("a", 1, inactive, "dns:///a")}},
		"NewestThatServes":     {revisions: []pkgv1.FunctionRevision{revision("a", 1, active, "dns:///a"), revision("b", 2, active, "dns:///b")}, want: "b"},
		"OlderUntilNewerCan":   {revisions: []pkgv1.FunctionRevision{revision("b", 2, active, ""), revision("a", 1, active, "dns:///a")}, want: "a"},
		"NewestIfNoneServes":   {revisions: []pkgv1.FunctionRevision{revision("a", 1, active, ""), revision("b", 2, active, "")}, want: "b"},
		"InactiveNeverCounts":  {revisions: []pkgv1.FunctionRevision{revision("a", 1, active, ""), revision("b", 2, inactive, "dns:///b")}, want: "a"},
		"NumberNotPlaceCounts": {revisions: []pkgv1.FunctionRevision{revision("b", 2, active, "dns:///b"), revision("a", 1, active, "dns:///a")}, want: "b"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := ""
			if found := InForce(tc.revisions); found != nil {
				got = found.Name
			}
			if got != tc.want {
				t.Errorf("in force is %q, want %q", got, tc.want)
			}
		})
	}
}
