// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package apifault

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func invalid(fields ...string) error {
	var all field.ErrorList
	for _, f := range fields {
		all = append(all, field.Required(field.NewPath("spec", f), ""))
	}
	return apierrors.NewInvalid(schema.GroupKind{Group: "example.org", Kind: "Thing"}, "one", all)
}

func TestText(t *testing.T) {
	cases := map[string]struct {
		reason string
		errs   []error // that mean the same
		want   string
	}{
		"Causes": {
			reason: "Validation goes through maps.",
			errs:   []error{invalid("a", "b"), invalid("b", "a"), invalid("b", "a", "b")},
			want:   "Invalid: spec.a: Required value; spec.b: Required value",
		},
		"WrappedCauses": {
			reason: "What was said about an error stays.",
			errs:   []error{fmt.Errorf("cannot apply it: %w", invalid("a", "b")), fmt.Errorf("cannot apply it: %w", invalid("b", "a"))},
			want:   "cannot apply it: Invalid: spec.a: Required value; spec.b: Required value",
		},
		"Lines": {
			reason: "So does the merging of fields.",
			errs: []error{
				apierrors.NewBadRequest("failed: errors:\n  .spec.a: not declared\n  .spec.b: not declared"),
				apierrors.NewBadRequest("failed: errors:\n  .spec.b: not declared\n  .spec.a: not declared"),
			},
			want: "failed: errors: .spec.a: not declared; .spec.b: not declared",
		},
		"PlainLines": {
			reason: "Without an introduction, the first line is one of them.",
			errs:   []error{errors.New("a\nb"), errors.New("b\n a")},
			want:   "a; b",
		},
		"Webhook": {
			reason: "A webhook's first line comes after the API server's words.",
			errs: []error{
				apierrors.NewBadRequest("admission webhook \"w\" denied the request: [p] a\n[p] b"),
				apierrors.NewBadRequest("admission webhook \"w\" denied the request: [p] b\n[p] a"),
			},
			want: `admission webhook "w" denied the request: [p] a; [p] b`,
		},
		"List": {
			reason: "Authorizers join errors in brackets.",
			errs: []error{
				errors.New(`forbidden: RBAC: [role "a" not found, role "b" not found]`),
				errors.New(`forbidden: RBAC: [role "b" not found, role "a" not found]`),
			},
			want: `forbidden: RBAC: [role "a" not found, role "b" not found]`,
		},
		"Sockets": {
			reason: "The local port is another each time.",
			errs: []error{
				errors.New("read tcp 10.0.0.7:51234->10.96.0.1:443: connection reset by peer"),
				errors.New("read tcp 10.0.0.7:60000->10.96.0.1:443: connection reset by peer"),
				errors.New("read tcp [fd00::7]:60000->10.96.0.1:443: connection reset by peer"),
			},
			want: "read tcp 10.96.0.1:443: connection reset by peer",
		},
		"SocketsInCauses": {
			reason: "Causes vary like messages.",
			errs: []error{
				&apierrors.StatusError{ErrStatus: metav1.Status{Details: &metav1.StatusDetails{
					Causes: []metav1.StatusCause{{Message: "dial 10.0.0.7:51234->10.0.0.8:443: b"}, {Message: "a"}},
				}}},
				&apierrors.StatusError{ErrStatus: metav1.Status{Message: "message", Details: &metav1.StatusDetails{
					Causes: []metav1.StatusCause{{Message: "a"}, {Message: "dial 10.0.0.7:6->10.0.0.8:443: b"}},
				}}},
			},
			want: "a; dial 10.0.0.8:443: b",
		},
		"Pointers": {
			reason: "So is where something is in memory.",
			errs:   []error{errors.New("cannot convert 0xc000123456"), errors.New("cannot convert 0xc0004567ab")},
			want:   "cannot convert 0x",
		},
		"NoAPIServer": {
			reason: "The message explains what a proxy answered.",
			errs: []error{
				apierrors.NewGenericServerResponse(http.StatusServiceUnavailable, "patch", schema.GroupResource{Resource: "things"}, "one", "", 0, true),
			},
			want: "the server is currently unable to handle the request (patch things one)",
		},
		"Plain": {
			reason: "Most errors are stable as they are.",
			errs:   []error{apierrors.NewNotFound(schema.GroupResource{Resource: "things"}, "one")},
			want:   `things "one" not found`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for _, err := range tc.errs {
				if got := Text(err); got != tc.want {
					t.Errorf("%s Of %q: got %q, want %q", tc.reason, err, got, tc.want)
				}
			}
		})
	}
}

func TestStable(t *testing.T) {
	if err := Stable(nil); err != nil {
		t.Errorf("no error became %v", err)
	}
	err := fmt.Errorf("cannot apply it: %w", Stable(invalid("b", "a")))
	if !apierrors.IsInvalid(err) {
		t.Errorf("%v does not wrap what it is about", err)
	}
	if again := fmt.Errorf("cannot apply it: %w", Stable(Stable(invalid("a", "b")))); again.Error() != err.Error() {
		t.Errorf("%q and %q", err, again)
	}
}
