// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"errors"
	"fmt"

	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	v1 "github.com/crosswatch-io/crosswatch/api/apiextensions/v1"
	pkgv1 "github.com/crosswatch-io/crosswatch/api/pkg/v1"
	pkgv1beta1 "github.com/crosswatch-io/crosswatch/api/pkg/v1beta1"
	"github.com/crosswatch-io/crosswatch/api/watch/v1alpha1"
)

// NewScheme returns a scheme with the kinds that the operator itself reads and writes.
func NewScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	err := errors.Join(
		clientgoscheme.AddToScheme(scheme),
		extv1.AddToScheme(scheme),
		v1.AddToScheme(scheme),
		pkgv1.AddToScheme(scheme),
		pkgv1beta1.AddToScheme(scheme),
		v1alpha1.AddToScheme(scheme),
	)
	if err != nil {
		return nil, fmt.Errorf("cannot make a scheme: %w", err)
	}
	return scheme, nil
}
