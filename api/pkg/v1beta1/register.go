// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion of the kinds in this package.
var GroupVersion = schema.GroupVersion{Group: "pkg.crossplane.io", Version: "v1beta1"}

// KindDeploymentRuntimeConfig is the kind of what configures how functions are run.
const KindDeploymentRuntimeConfig = "DeploymentRuntimeConfig"

// AddToScheme registers the kinds of this package.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&Function{}, &FunctionList{}, &FunctionRevision{}, &FunctionRevisionList{},
		&DeploymentRuntimeConfig{}, &DeploymentRuntimeConfigList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
