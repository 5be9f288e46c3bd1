// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package composition

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/crosswatch-io/crosswatch/api/apiextensions/v1"
	commonv1 "github.com/crosswatch-io/crosswatch/api/common/v1"
	pkgv1 "github.com/crosswatch-io/crosswatch/api/pkg/v1"
)

func TestValidPipeline(t *testing.T) {
	function := func(name string, state pkgv1.RevisionDesiredState, capabilities ...string) pkgv1.FunctionRevision {
		return pkgv1.FunctionRevision{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{pkgv1.LabelParentPackage: name}},
			Spec:       pkgv1.FunctionRevisionSpec{DesiredState: state},
			Status:     pkgv1.FunctionRevisionStatus{Capabilities: capabilities},
		}
	}
	pipeline := []v1.PipelineStep{
		{Step: "first", FunctionRef: v1.FunctionReference{Name: "walls"}},
		{Step: "second", FunctionRef: v1.FunctionReference{Name: "roof"}},
	}
	valid := commonv1.True(commonv1.TypeValidPipeline, commonv1.ReasonValidPipeline)
	cases := map[string]struct {
		functions []pkgv1.FunctionRevision
		want      commonv1.Condition
	}{
		"Missing":  {want: valid},
		"Capable":  {functions: []pkgv1.FunctionRevision{function("walls", pkgv1.RevisionActive, "operation", "composition")}, want: valid},
		"Silent":   {functions: []pkgv1.FunctionRevision{function("walls", pkgv1.RevisionActive)}, want: valid},
		"Inactive": {functions: []pkgv1.FunctionRevision{function("walls", pkgv1.RevisionInactive, "operation")}, want: valid},
		"Unused":   {functions: []pkgv1.FunctionRevision{function("doors", pkgv1.RevisionActive, "operation")}, want: valid},
		"Incapable": {
			functions: []pkgv1.FunctionRevision{
				function("roof", pkgv1.RevisionActive, "operation"),
				function("walls", pkgv1.RevisionActive, "composition"),
			},
			want: commonv1.False(commonv1.TypeValidPipeline, commonv1.ReasonMissingCapabilities,
				`step "second": function "roof" lacks the capability "composition"`),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, validPipeline(pipeline, tc.functions)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
