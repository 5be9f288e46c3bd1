// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package composition

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	v1 "github.com/crosswatch-io/crosswatch/api/apiextensions/v1"
)

// nameHashLength is how much of the hash a revision's name has.
const nameHashLength = 7

var compositionKind = v1.GroupVersion.WithKind(v1.KindComposition)

// Hash returns the hash of all of a Composition that its revisions keep: the same as other engines of this API make, so that
// revisions are recognised that they made.
func Hash(c *v1.Composition) (string, error) {
	sum := sha256.New()
	for _, part := range []any{c.Labels, c.Annotations, c.Spec} {
		text, err := yaml.Marshal(part)
		if err != nil {
			return "", fmt.Errorf("cannot write Composition %q as YAML: %w", c.Name, err)
		}
		sum.Write(text)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// hashLabel is as much of the hash as a label holds.
func hashLabel(hash string) string {
	return hash[:validation.LabelValueMaxLength]
}

// Snapshot returns the revision that keeps the Composition's content, of that hash, under that number. It shares no memory with
// the Composition.
func Snapshot(c *v1.Composition, hash string, number int64) *v1.CompositionRevision {
	c = c.DeepCopy()
	labels := maps.Clone(c.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[v1.LabelCompositionName] = c.Name
	labels[v1.LabelCompositionHash] = hashLabel(hash)
	return &v1.CompositionRevision{
		ObjectMeta: metav1.ObjectMeta{
			Name:            c.Name + "-" + hash[:nameHashLength],
			Labels:          labels,
			Annotations:     c.Annotations,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(c, compositionKind)},
		},
		Spec: v1.SpecOf(c.Spec, number),
	}
}
