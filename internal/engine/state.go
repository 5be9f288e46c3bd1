// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crosswatch-io/crosswatch/internal/apifault"
	"github.com/crosswatch-io/crosswatch/internal/store"
)

// State is what a watch is doing.
type State string

// The states of a watch.
const (
	Starting    State = "Starting"
	Active      State = "Active"
	Forbidden   State = "Forbidden"
	NotFound    State = "NotFound"
	Unwatchable State = "Unwatchable"
	Failed      State = "Failed"
	Stopping    State = "Stopping"
)

// WatchError says why the objects of a kind can't be read from its watch. Its
// text is stable while the state is. When the cause is gone, the watch becomes
// Active and wakes every XR that refers to the kind; no retry is needed.
type WatchError struct {
	GVK     schema.GroupVersionKind
	State   State
	Message string
}

func (e *WatchError) Error() string {
	return fmt.Sprintf("cannot watch %s: %s", kindText(e.GVK), e.Message)
}

// Waiting says that the watch has only not synced yet.
func (e *WatchError) Waiting() bool { return e.State == Starting }

// Causes of states that no answer of the API server stands for.
var (
	errUnlistable = errors.New("the kind has no list")
	// errReplaced means that the kind is served by another resource or in another
	// scope than it was: it is to be watched anew.
	errReplaced = errors.New("the kind is not what it was")
)

const (
	messageStarting = "the first list is not complete yet"
	messagePolled   = "the API server offers no watch for this kind, so it is listed about once a minute: changes are noticed late"
)

// classify turns the failure of a list or watch into a state and a message
// that is the same each time, as it ends in conditions.
func classify(gvk schema.GroupVersionKind, resource string, err error) (State, string) {
	switch {
	case errors.Is(err, errReplaced):
		return Starting, messageStarting
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		return Forbidden, fmt.Sprintf("the operator may not %s it: add {apiGroups: [%s], resources: [%s], verbs: [get, list, watch]}, "+
			"and create, patch, delete if it is composed, to a ClusterRole with the label crosswatch.io/aggregate-to-crosswatch=true",
			verbOf(err), cmp.Or(gvk.Group, `""`), resource)
	case apierrors.IsNotFound(err):
		return NotFound, "the API server does not serve this kind: " +
			"install what defines it, or correct the apiVersion and kind that ask for it"
	case errors.Is(err, errUnlistable), apierrors.IsMethodNotSupported(err):
		return Unwatchable, "the API server offers no list of this kind, so it can be neither composed nor required"
	default:
		return Failed, "the API server did not answer the list or watch; it is tried again until it does" + reasonOf(err)
	}
}

// verbOf returns what of a kind was refused.
func verbOf(err error) string {
	var request *store.RequestError
	if errors.As(err, &request) {
		return request.Verb
	}
	return "discover"
}

// reasonOf returns what the API server said, if it said anything.
func reasonOf(err error) string {
	var answer interface {
		error
		apierrors.APIStatus
	}
	if !errors.As(err, &answer) || answer.Error() == "" {
		return ""
	}
	return ": " + apifault.Text(answer)
}

func kindText(gvk schema.GroupVersionKind) string {
	return fmt.Sprintf("kind %q of %s", gvk.Kind, gvk.GroupVersion())
}
