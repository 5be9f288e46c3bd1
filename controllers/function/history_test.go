// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package function

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	commonv1 "github.com/crosswatch-io/crosswatch/api/common/v1"
	pkgv1 "github.com/crosswatch-io/crosswatch/api/pkg/v1"
)

func numbered(number int64, state pkgv1.RevisionDesiredState, endpoint string) pkgv1.FunctionRevision {
	r := pkgv1.FunctionRevision{ObjectMeta: metav1.ObjectMeta{Name: string(rune('a' + number - 1))}}
	r.Spec.Revision, r.Spec.DesiredState, r.Status.Endpoint = number, state, endpoint
	return r
}

func namesOf(revisions []*pkgv1.FunctionRevision) string {
	var names strings.Builder
	for _, r := range revisions {
		names.WriteString(r.Name)
	}
	return names.String()
}

func TestWhichRevisionsAreSuperseded(t *testing.T) {
	const active, inactive = pkgv1.RevisionActive, pkgv1.RevisionInactive
	cases := map[string]struct {
		revisions []pkgv1.FunctionRevision
		want      string
	}{
		"None":              {},
		"TheOnlyOne":        {revisions: []pkgv1.FunctionRevision{numbered(1, active, "dns:///a")}},
		"NotUntilTheNewCan": {revisions: []pkgv1.FunctionRevision{numbered(1, active, "dns:///a"), numbered(2, active, "")}},
		"OnceTheNewCan":     {revisions: []pkgv1.FunctionRevision{numbered(1, active, "dns:///a"), numbered(2, active, "dns:///b")}, want: "a"},
		"ABrokenOneBetween": {revisions: []pkgv1.FunctionRevision{numbered(1, active, "dns:///a"), numbered(2, active, ""), numbered(3, active, "")}, want: "b"},
		"NoneServes":        {revisions: []pkgv1.FunctionRevision{numbered(1, active, ""), numbered(2, active, "")}, want: "a"},
		"InactiveOnesAreSo": {revisions: []pkgv1.FunctionRevision{numbered(1, inactive, "dns:///a"), numbered(2, active, "dns:///b")}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := namesOf(superseded(tc.revisions)); got != tc.want {
				t.Errorf("superseded are %q, want %q", got, tc.want)
			}
		})
	}
}

func TestWhichRevisionsAreSurplus(t *testing.T) {
	// retired says for how long a revision has been inactive.
	retired := func(number int64, since time.Duration) pkgv1.FunctionRevision {
		r := numbered(number, pkgv1.RevisionInactive, "")
		c := commonv1.False(commonv1.TypeRuntimeHealthy, commonv1.ReasonInactivePackageRevision, "")
		c.LastTransitionTime = metav1.NewTime(start.Add(-since))
		r.Status.SetConditions(c)
		return r
	}
	type outcome struct {
		Gone string
		Wait time.Duration
	}
	cases := map[string]struct {
		limit     *int64
		revisions []pkgv1.FunctionRevision
		want      outcome
	}{
		"OneIsKept":        {revisions: []pkgv1.FunctionRevision{retired(2, time.Hour), retired(1, time.Hour), numbered(3, pkgv1.RevisionActive, "x")}, want: outcome{Gone: "a"}},
		"TheOldestGo":      {limit: ptr.To[int64](2), revisions: []pkgv1.FunctionRevision{retired(4, time.Hour), retired(1, time.Hour), retired(3, time.Hour), retired(2, time.Hour)}, want: outcome{Gone: "ab"}},
		"ZeroKeepsAll":     {limit: ptr.To[int64](0), revisions: []pkgv1.FunctionRevision{retired(1, time.Hour), retired(2, time.Hour)}},
		"ActiveOnesStay":   {revisions: []pkgv1.FunctionRevision{numbered(1, pkgv1.RevisionActive, ""), numbered(2, pkgv1.RevisionActive, ""), retired(3, time.Hour)}},
		"NotWhileDraining": {revisions: []pkgv1.FunctionRevision{retired(1, 20*time.Second), retired(2, 0)}, want: outcome{Wait: 40 * time.Second}},
		"NotYetToldToStop": {revisions: []pkgv1.FunctionRevision{numbered(1, pkgv1.RevisionInactive, "x"), retired(2, time.Hour)}, want: outcome{Wait: Drain}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			fn := walls(imageOne)
			fn.Spec.RevisionHistoryLimit = tc.limit
			gone, wait := surplus(fn, tc.revisions, start)
			if diff := cmp.Diff(tc.want, outcome{Gone: namesOf(gone), Wait: wait}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheImagesOwnRevisionIsNoSurplus(t *testing.T) {
	fn := walls(imageOne)
	fn.Spec.RevisionActivationPolicy = ptr.To(pkgv1.ActivationManual)
	current := *revisionOf(fn, 1, pkgv1.RevisionInactive)
	if gone, _ := surplus(fn, []pkgv1.FunctionRevision{current, numbered(2, pkgv1.RevisionInactive, "")}, start.Add(time.Hour)); len(gone) > 0 {
		t.Errorf("%s would be deleted", namesOf(gone))
	}
}
