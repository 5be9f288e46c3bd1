// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package composer

import (
	"context"
	"errors"
	"fmt"

	v1 "github.com/crosswatch-io/crosswatch/api/apiextensions/v1"
)

// admit records each desired resource as a dependency and puts its kind's watch
// into service, which also tells the kind's scope. A kind that the XR may not
// compose ends the run before anything is changed. A kind that can't be watched
// costs its own resources only; but a watch that is just starting ends the run,
// since it is about to wake the XR and a worker waits for one at most.
func (r *run) admit(ctx context.Context) error {
	var refused []error
	for _, one := range r.resources {
		objects, err := r.in.Record.Depend(ctx, r.key, one.ref)
		switch {
		case isWaiting(err), ctx.Err() != nil:
			return fmt.Errorf("resource %q: %w", one.name, errors.Join(err, ctx.Err()))
		case err != nil:
			one.err = err
		case r.refusal(one, objects) != nil:
			refused = append(refused, fmt.Errorf("resource %q: %w", one.name, r.refusal(one, objects)))
		default:
			one.err = r.place(ctx, one, objects)
		}
	}
	return errors.Join(append(refused, r.doubles()...)...)
}

// doubles refuses resources that are one object: their intents would undo each
// other for ever. Which object each is, is known once it is admitted.
func (r *run) doubles() []error {
	taken := map[identity]string{}
	var refused []error
	for _, one := range r.resources {
		if other, ok := taken[identityOf(one.ref)]; ok {
			refused = append(refused, fmt.Errorf("resource %q: it is the same %s as resource %q", one.name, one.ref, other))
			continue
		}
		taken[identityOf(one.ref)] = one.name
	}
	return refused
}

func (r *run) refusal(one *resource, objects Objects) error {
	switch {
	case objects.Namespaced() && one.ref.Namespace == "":
		return fmt.Errorf("it has no namespace, and %s is namespaced", one.ref.GVK.Kind)
	case !objects.Namespaced() && r.in.Scope == v1.ScopeNamespaced:
		return fmt.Errorf("%s is cluster-scoped, and a namespaced XR composes in its own namespace only", one.ref.GVK.Kind)
	}
	return nil
}

// place admits a resource to its kind. A namespace that a function gave to a
// cluster-scoped object is dropped, and the reference recorded as it is.
func (r *run) place(ctx context.Context, one *resource, objects Objects) error {
	if !objects.Namespaced() && one.ref.Namespace != "" {
		one.ref.Namespace = ""
		one.object.SetNamespace("")
		if _, err := r.in.Record.Depend(ctx, r.key, one.ref); err != nil {
			return err
		}
	}
	one.objects = objects
	return nil
}
