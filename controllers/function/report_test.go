// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package function

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	commonv1 "github.com/crosswatch-io/crosswatch/api/common/v1"
	pkgv1 "github.com/crosswatch-io/crosswatch/api/pkg/v1"
)

func TestWhatAFunctionSaysOfItsRevisions(t *testing.T) {
	const active, inactive = pkgv1.RevisionActive, pkgv1.RevisionInactive
	runs := commonv1.True(commonv1.TypeRuntimeHealthy, commonv1.ReasonHealthyPackageRuntime)
	fails := commonv1.False(commonv1.TypeRuntimeHealthy, commonv1.ReasonUnhealthyPackageRuntime, "it has no pod")
	revision := func(image string, number int64, state pkgv1.RevisionDesiredState, conditions ...commonv1.Condition) pkgv1.FunctionRevision {
		r := *revisionOf(walls(image), number, state)
		r.Status.SetConditions(conditions...)
		if len(conditions) > 0 && conditions[0].Status == corev1.ConditionTrue {
			r.Status.Endpoint = "dns:///" + r.Name
		}
		return r
	}
	type outcome struct{ Installed, Healthy, Message string }
	current, other := revisionName(walls(imageTwo)), revisionName(walls(imageOne))
	cases := map[string]struct {
		revisions []pkgv1.FunctionRevision
		want      outcome
	}{
		"Runs": {
			revisions: []pkgv1.FunctionRevision{revision(imageTwo, 1, active, runs)},
			want:      outcome{"ActivePackageRevision", "HealthyPackageRevision", ""},
		},
		"New": {
			revisions: []pkgv1.FunctionRevision{revision(imageTwo, 1, active)},
			want:      outcome{"ActivePackageRevision", "UnknownPackageRevisionHealth", `FunctionRevision "` + current + `" does not run yet`},
		},
		"Fails": {
			revisions: []pkgv1.FunctionRevision{revision(imageTwo, 1, active, fails)},
			want:      outcome{"ActivePackageRevision", "UnhealthyPackageRevision", `FunctionRevision "` + current + `": it has no pod`},
		},
		"FailsWhileTheOldServes": {
			revisions: []pkgv1.FunctionRevision{revision(imageOne, 1, active, runs), revision(imageTwo, 2, active, fails)},
			want: outcome{
				"ActivePackageRevision", "UnhealthyPackageRevision",
				`FunctionRevision "` + current + `": it has no pod; FunctionRevision "` + other + `" serves meanwhile`,
			},
		},
		"WaitsForPeopleWhileTheOldServes": {
			revisions: []pkgv1.FunctionRevision{revision(imageOne, 1, active, runs), revision(imageTwo, 2, inactive)},
			want:      outcome{"InactivePackageRevision", "HealthyPackageRevision", ""},
		},
		"WaitsForPeople": {
			revisions: []pkgv1.FunctionRevision{revision(imageTwo, 1, inactive)},
			want:      outcome{"InactivePackageRevision", "UnknownPackageRevisionHealth", "no FunctionRevision is active"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			fn := walls(imageTwo)
			report(fn, tc.revisions, nil)
			healthy := fn.Status.GetCondition(commonv1.TypeHealthy)
			got := outcome{fn.Status.GetCondition(commonv1.TypeInstalled).Reason, healthy.Reason, healthy.Message}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if fn.Status.CurrentRevision != current || fn.Status.CurrentIdentifier != imageTwo {
				t.Errorf("current is %q of %q", fn.Status.CurrentRevision, fn.Status.CurrentIdentifier)
			}
		})
	}
}
