// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package xr

import (
	"regexp"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"
)

const uid types.UID = "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0"

var digitsAtEnd = regexp.MustCompile(`[^-]-[0-9a-f]{12}$`)

func TestComposedName(t *testing.T) {
	// First digits of the SHA-256 of uid and "bucket", by sha256sum.
	const digits = "f8796e025a7e"
	cases := map[string]struct {
		reason string
		prefix string
		want   string
	}{
		"Label":          {"a prefix that is a name stays as it is", "app-", "app-" + digits},
		"GenerateName":   {"a prefix without hyphen gets one", "app", "app-" + digits},
		"Hyphens":        {"there is one hyphen before the digits", "app---", "app-" + digits},
		"InnerHyphens":   {"hyphens within the prefix stay", "a--b-", "a--b-" + digits},
		"Dots":           {"a subdomain has dots", "a.b.c-", "a.b.c-" + digits},
		"DotAtEnd":       {"no label of the name is without its letters", "app.-", "app-" + digits},
		"DotsAndHyphens": {"each label begins and ends with a letter or digit", "-a-.-b..c.-", "a.b.c-" + digits},
		"Capitals":       {"capitals become small", "MyApp-", "myapp-" + digits},
		"Illegal":        {"what a name can't have becomes a hyphen", "my_app!x é-", "my-app-x-" + digits},
		"OnlyIllegal":    {"a name has something before the hyphen", "!!-", "composed-" + digits},
		"Empty":          {"a name has something before the hyphen", "", "composed-" + digits},
		"Long":           {"a long prefix is cut", strings.Repeat("a", 200), strings.Repeat("a", 50) + "-" + digits},
		"CutAtHyphen":    {"there is one hyphen where the cut left more", strings.Repeat("a", 49) + "-b-", strings.Repeat("a", 49) + "-" + digits},
		"CutAtDot":       {"a dot where the cut was made goes", strings.Repeat("a", 49) + ".b-", strings.Repeat("a", 49) + "-" + digits},
		"JustFits":       {"a prefix is cut only if it has to be", strings.Repeat("a", 50) + "-", strings.Repeat("a", 50) + "-" + digits},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			same(t, tc.reason, tc.want, ComposedName(uid, "bucket", tc.prefix))
		})
	}
}

func TestComposedNameTellsApart(t *testing.T) {
	name := ComposedName(uid, "bucket", "app-")
	for what, other := range map[string]string{
		"resource name": ComposedName(uid, "Bucket", "app-"),
		"XR":            ComposedName(uid[:35]+"1", "bucket", "app-"),
		"prefix":        ComposedName(uid, "bucket", "apps-"),
	} {
		if other == name {
			t.Errorf("another %s has the same name %q", what, name)
		}
	}
}

func TestComposedNameIsValid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		prefix := rapid.OneOf(
			rapid.String(),
			rapid.StringMatching(`[a-cA-C.!-]{0,8}`),
			rapid.StringMatching(`[a-z.-]{45,55}`),
			rapid.StringN(200, 200, -1),
		).Draw(t, "prefix")
		resource := rapid.OneOf(rapid.String(), rapid.StringN(200, 200, -1)).Draw(t, "resource name")

		name := ComposedName(uid, resource, prefix)
		if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
			t.Fatalf("%q is no name: %v", name, problems)
		}
		if len(name) > 63 {
			t.Fatalf("%q has %d characters", name, len(name))
		}
		if !digitsAtEnd.MatchString(name) {
			t.Fatalf("%q does not end with one hyphen and twelve digits", name)
		}
		if again := ComposedName(uid, resource, prefix); again != name {
			t.Fatalf("%q is %q the next time", name, again)
		}
	})
}

func TestComposedNameKeepsGoodPrefixes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		prefix := rapid.StringMatching(`[a-z0-9]([a-z0-9-]{0,46}[a-z0-9])?`).Draw(t, "prefix")
		if name := ComposedName(uid, "bucket", prefix+"-"); !strings.HasPrefix(name, prefix+"-") {
			t.Fatalf("%q does not begin with %q", name, prefix+"-")
		}
	})
}
