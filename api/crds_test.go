// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	extvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"
)

const basesDir = "../config/crd/bases"

func TestGeneratedCRDsAreValid(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join(basesDir, "*.yaml"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no CRDs in %s: %v", basesDir, err)
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			if errs := extvalidation.ValidateCustomResourceDefinition(t.Context(), loadCRD(t, path)); len(errs) > 0 {
				t.Error(errs.ToAggregate())
			}
		})
	}
}

func TestKustomizationListsEveryCRD(t *testing.T) {
	raw, err := os.ReadFile("../config/crd/kustomization.yaml")
	if err != nil {
		t.Fatal(err)
	}
	paths, err := filepath.Glob(filepath.Join(basesDir, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		if !strings.Contains(string(raw), "bases/"+filepath.Base(path)) {
			t.Errorf("config/crd/kustomization.yaml does not list %s", filepath.Base(path))
		}
	}
}

// loadCRD returns the CRD as an API server has it in memory, defaults set.
func loadCRD(t *testing.T, path string) *apiextensions.CustomResourceDefinition {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	versioned := &extv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(raw, versioned); err != nil {
		t.Fatal(err)
	}
	extv1.SetDefaults_CustomResourceDefinition(versioned)
	extv1.SetDefaults_CustomResourceDefinitionSpec(&versioned.Spec)
	// A stored CRD has this status; validation asks for it.
	versioned.Status.StoredVersions = []string{storageVersion(versioned)}
	crd := &apiextensions.CustomResourceDefinition{}
	if err := extv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(versioned, crd, nil); err != nil {
		t.Fatal(err)
	}
	return crd
}

func storageVersion(crd *extv1.CustomResourceDefinition) string {
	for _, v := range crd.Spec.Versions {
		if v.Storage {
			return v.Name
		}
	}
	return ""
}

// served is one version of a kind, as an API server handles objects of it.
type served struct {
	structural *schema.Structural
	values     validation.SchemaValidator
	rules      *cel.Validator
}

// serve returns how version of the kind in that CRD file is served.
func serve(t *testing.T, file, version string) served {
	t.Helper()
	crd := loadCRD(t, filepath.Join(basesDir, file))
	props, err := apiextensions.GetSchemaForVersion(crd, version)
	if err != nil || props == nil {
		t.Fatalf("%s has no schema of version %s: %v", file, version, err)
	}
	structural, err := schema.NewStructural(props.OpenAPIV3Schema)
	if err != nil {
		t.Fatal(err)
	}
	values, _, err := validation.NewSchemaValidator(props.OpenAPIV3Schema)
	if err != nil {
		t.Fatal(err)
	}
	return served{structural: structural, values: values, rules: cel.NewValidator(structural, true, celconfig.PerCallLimit)}
}

// admit prunes and defaults obj in place and returns what is wrong with it. old is what obj replaces, nil if it is new.
func (s served) admit(obj, old map[string]any) error {
	ctx := context.Background()
	pruning.Prune(obj, s.structural, true)
	defaulting.Default(obj, s.structural)

	var errs field.ErrorList
	var before any
	if old == nil {
		errs = validation.ValidateCustomResource(nil, obj, s.values)
	} else {
		before = old
		errs = validation.ValidateCustomResourceUpdate(nil, obj, old, s.values)
	}
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, s.structural, obj)...)
	errs = append(errs, objectmeta.Validate(ctx, nil, obj, s.structural, true)...)
	ruleErrs, _ := s.rules.Validate(ctx, nil, s.structural, obj, before, celconfig.RuntimeCELCostBudget)
	return append(errs, ruleErrs...).ToAggregate()
}

// object parses YAML into what an API server makes of it, whole numbers as integers.
func object(t *testing.T, text string) map[string]any {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	obj := map[string]any{}
	if err := json.Unmarshal(raw, &obj); err != nil {
		t.Fatal(err)
	}
	return obj
}

// merge changes dst as a JSON merge patch does: objects are merged, null removes, and anything else replaces.
func merge(dst, patch map[string]any) map[string]any {
	for key, value := range patch {
		fields, isObject := value.(map[string]any)
		existing, _ := dst[key].(map[string]any)
		switch {
		case value == nil:
			delete(dst, key)
		case isObject && existing != nil:
			merge(existing, fields)
		default:
			dst[key] = value
		}
	}
	return dst
}

// refused reports a mismatch between what admit said and what was expected: wrong is part of the message, or "" for none.
func refused(t *testing.T, err error, wrong string) {
	t.Helper()
	switch {
	case wrong == "" && err != nil:
		t.Errorf("refused: %v", err)
	case wrong != "" && err == nil:
		t.Errorf("accepted, want it refused with %q", wrong)
	case wrong != "" && !strings.Contains(err.Error(), wrong):
		t.Errorf("refused with %q, want %q", err, wrong)
	}
}

// change is a case of a table of changes to a valid object.
type change struct {
	// patch is a merge patch in YAML.
	patch string
	// wrong is part of the message with which the result is refused; "" if it is accepted.
	wrong string
}

// creates runs a table of objects to create: base with each change.
func (s served) creates(t *testing.T, base string, cases map[string]change) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			refused(t, s.admit(merge(object(t, base), object(t, tc.patch)), nil), tc.wrong)
		})
	}
}

// updates runs a table of updates: base replaced by base with each change.
func (s served) updates(t *testing.T, base string, cases map[string]change) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			old := object(t, base)
			if err := s.admit(old, nil); err != nil {
				t.Fatalf("the object to update is refused: %v", err)
			}
			refused(t, s.admit(merge(object(t, base), object(t, tc.patch)), old), tc.wrong)
		})
	}
}
