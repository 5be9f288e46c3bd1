// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package function

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	pkgv1 "github.com/crosswatch-io/crosswatch/api/pkg/v1"
)

func TestPlans(t *testing.T) {
	const active, inactive = pkgv1.RevisionActive, pkgv1.RevisionInactive
	one, two := walls(imageOne), walls(imageTwo)
	manual := walls(imageTwo)
	manual.Spec.RevisionActivationPolicy = ptr.To(pkgv1.ActivationManual)
	configured := walls(imageTwo)
	configured.Spec.RuntimeConfigRef = &pkgv1.RuntimeConfigReference{Name: "large"}
	nobodys := revisionOf(two, 1, active)
	nobodys.OwnerReferences = nil
	another := revisionOf(two, 1, active)
	another.OwnerReferences[0].UID = "another"

	type outcome struct {
		Nothing, Create bool
		Number          int64
		State           pkgv1.RevisionDesiredState
		Config          string
	}
	cases := map[string]struct {
		fn        *pkgv1.Function
		revisions []*pkgv1.FunctionRevision
		want      outcome
	}{
		"First":                 {fn: two, want: outcome{Create: true, Number: 1, State: active}},
		"FirstByHand":           {fn: manual, want: outcome{Create: true, Number: 1, State: inactive}},
		"UpToDate":              {fn: two, revisions: []*pkgv1.FunctionRevision{revisionOf(two, 1, active)}, want: outcome{Nothing: true, Number: 1, State: active}},
		"AnotherImage":          {fn: two, revisions: []*pkgv1.FunctionRevision{revisionOf(one, 4, active)}, want: outcome{Create: true, Number: 5, State: active}},
		"BackToAnEarlierImage":  {fn: two, revisions: []*pkgv1.FunctionRevision{revisionOf(two, 1, inactive), revisionOf(one, 2, active)}, want: outcome{Number: 3, State: active}},
		"BackByHand":            {fn: manual, revisions: []*pkgv1.FunctionRevision{revisionOf(two, 1, inactive), revisionOf(one, 2, active)}, want: outcome{Number: 3, State: inactive}},
		"ActivatedByHand":       {fn: manual, revisions: []*pkgv1.FunctionRevision{revisionOf(two, 1, active)}, want: outcome{Nothing: true, Number: 1, State: active}},
		"DeactivatedByHand":     {fn: two, revisions: []*pkgv1.FunctionRevision{revisionOf(two, 1, inactive)}, want: outcome{Number: 1, State: active}},
		"AnotherConfiguration":  {fn: configured, revisions: []*pkgv1.FunctionRevision{revisionOf(two, 1, active)}, want: outcome{Number: 1, State: active, Config: "large"}},
		"TakenOverFromNobody":   {fn: two, revisions: []*pkgv1.FunctionRevision{nobodys}, want: outcome{Number: 1, State: active}},
		"NotTakenFromSomebody":  {fn: two, revisions: []*pkgv1.FunctionRevision{another}, want: outcome{Create: true, Number: 2, State: active}},
		"OthersNumbersCountToo": {fn: two, revisions: []*pkgv1.FunctionRevision{{ObjectMeta: metav1.ObjectMeta{Name: "by-hand"}, Spec: pkgv1.FunctionRevisionSpec{Revision: 7}}}, want: outcome{Create: true, Number: 8, State: active}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var revisions []pkgv1.FunctionRevision
			for _, r := range tc.revisions {
				revisions = append(revisions, *r)
			}
			p := planFor(tc.fn, revisions)
			got := outcome{Nothing: p.isNothing(), Create: p.have == nil, Number: p.want.Spec.Revision, State: p.want.Spec.DesiredState}
			if p.want.Spec.RuntimeConfigRef != nil {
				got.Config = p.want.Spec.RuntimeConfigRef.Name
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
			if !metav1.IsControlledBy(p.want, tc.fn) || p.want.Labels[pkgv1.LabelParentPackage] != tc.fn.Name {
				t.Errorf("it is not the Function's: %v, %v", p.want.OwnerReferences, p.want.Labels)
			}
		})
	}
}

func TestNames(t *testing.T) {
	const long = "a-name-of-a-function-that-is-longer-than-fifty-characters-are"
	cases := map[string]string{
		"walls":          "walls-",
		"walls.and.more": "walls-and-more-",
		"2walls":         "f2walls-",
		long:             "a-name-of-a-function-that-is-longer-than-fifty-cha-",
		"a-name-of-a-function-that-is-longer-than-fifty-ch--x": "a-name-of-a-function-that-is-longer-than-fifty-ch-",
	}
	for function, prefix := range cases {
		t.Run(function, func(t *testing.T) {
			fn := walls(imageOne)
			fn.Name = function
			got := revisionName(fn)
			if got != prefix+got[max(0, len(got)-revisionHashLength):] || !canNameService(got) {
				t.Errorf("got %q, want %q and a hash", got, prefix)
			}
		})
	}
}

func TestNoTwoRevisionsHaveOneName(t *testing.T) {
	seen := map[string]string{}
	for _, function := range []string{"a.b", "a-b", "1a", "f1a"} {
		for _, image := range []string{imageOne, imageTwo} {
			fn := walls(image)
			fn.Name = function
			name, who := revisionName(fn), function+" of "+image
			if other, taken := seen[name]; taken {
				t.Errorf("%s and %s have one name: %s", who, other, name)
			}
			seen[name] = who
		}
	}
}

func TestWhatCannotBeInstalled(t *testing.T) {
	cases := map[string]struct {
		name, image string
		wrong       bool
	}{
		"ByTag":       {name: "walls", image: imageOne},
		"ByDigest":    {name: "walls", image: "registry.example.org:5000/a/walls@sha256:" + digest},
		"ByBoth":      {name: "walls", image: "registry.example.org/walls:v1@sha256:" + digest},
		"NoTag":       {name: "walls", image: "registry.example.org/walls", wrong: true},
		"NoImage":     {name: "walls", image: "registry.example.org/walls:v1:v2", wrong: true},
		"UpperCase":   {name: "walls", image: "registry.example.org/Walls:v1", wrong: true},
		"ShortDigest": {name: "walls", image: "registry.example.org/walls@sha256:0a", wrong: true},
		"Empty":       {name: "walls", wrong: true},
		"LongName":    {name: "a-function-whose-name-has-more-characters-than-a-label-can-have-at-most", image: imageOne, wrong: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			fn := walls(tc.image)
			fn.Name = tc.name
			if err := validate(fn); (err != nil) != tc.wrong {
				t.Errorf("got error %v, want one: %t", err, tc.wrong)
			}
		})
	}
}

const digest = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
