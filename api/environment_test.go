// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEnvironmentConfig(t *testing.T) {
	const config = `
apiVersion: apiextensions.crossplane.io/v1beta1
kind: EnvironmentConfig
metadata: {name: prod}
data: {text: a, list: [1, {b: c}], nested: {deep: {deeper: true}}, number: 1.5}
`
	s := serve(t, "apiextensions.crossplane.io_environmentconfigs.yaml", "v1beta1")
	s.creates(t, config, map[string]change{
		"data of any shape": {},
		"no data":           {patch: `data: null`},
		"data is a list":    {patch: `data: [a]`, wrong: "must be of type object"},
	})
	got := object(t, config)
	if err := s.admit(got, nil); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(object(t, config), got); diff != "" {
		t.Errorf("as it is stored (-want +got):\n%s", diff)
	}
}
