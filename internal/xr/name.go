// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package xr

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// maxNameLength is that of a DNS label: names of composed resources end up
	// in label values and host names.
	maxNameLength = 63

	nameDigits = 12

	// defaultPrefix stands in where no character of a prefix can be used.
	defaultPrefix = "composed"
)

// ComposedName returns the name of a composed resource that has none of its own.
// It is the same for the same XR and resource name, so that a write whose result
// was lost never makes a second object. The prefix is the resource's
// generateName, or the XR's composite label.
//
// The name is a DNS-1123 subdomain of at most 63 characters: the prefix, one
// hyphen, and twelve hexadecimal digits. Of the prefix capitals become small,
// other characters that a name can't have become hyphens, and what is too long
// is cut off.
func ComposedName(xrUID types.UID, resourceName, prefix string) string {
	sum := sha256.Sum256([]byte(string(xrUID) + resourceName))
	digits := hex.EncodeToString(sum[:])[:nameDigits]

	prefix = subdomain(prefix)
	if longest := maxNameLength - nameDigits - len("-"); len(prefix) > longest {
		prefix = prefix[:longest]
	}
	prefix = strings.TrimRight(prefix, "-.")
	if prefix == "" {
		prefix = defaultPrefix
	}
	return prefix + "-" + digits
}

// subdomain makes a DNS-1123 subdomain of any length from the prefix, or "" if
// there is nothing to make it from. A prefix that is one already stays as it is.
func subdomain(prefix string) string {
	prefix = strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '.':
			return r
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		}
		return '-'
	}, prefix)

	// Each label between dots begins and ends with a letter or digit.
	var labels []string
	for label := range strings.SplitSeq(prefix, ".") {
		if label = strings.Trim(label, "-"); label != "" {
			labels = append(labels, label)
		}
	}
	return strings.Join(labels, ".")
}
