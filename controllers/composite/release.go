// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package composite

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	v1 "github.com/crosswatch-io/crosswatch/api/apiextensions/v1"
	"github.com/crosswatch-io/crosswatch/internal/apifault"
)

// release lets go of an XR that is being deleted; owner references do the rest.
// Its record stays until it is gone, since Forget follows the deletion itself.
func (p *pass) release(ctx context.Context) error {
	p.session.Settle(p.key)
	finalizers := p.before.GetFinalizers()
	if !slices.Contains(finalizers, v1.FinalizerComposite) {
		return nil
	}
	rest := slices.DeleteFunc(slices.Clone(finalizers), func(f string) bool { return f == v1.FinalizerComposite })
	// A merge patch replaces the list: the version makes sure that it is this one.
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"finalizers":      rest,
		"resourceVersion": p.before.GetResourceVersion(),
	}})
	if err != nil {
		return fmt.Errorf("cannot remove the finalizer: %w", err)
	}
	stored, err := p.client().Patch(ctx, p.key.Name, types.MergePatchType, patch, metav1.PatchOptions{
		FieldManager: v1.FieldOwnerComposite,
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot remove the finalizer: %w", apifault.Stable(err))
	}
	p.stored(stored)
	return nil
}

func (p *pass) client() dynamic.ResourceInterface {
	if p.key.Namespace != "" {
		return p.config.Dynamic.Resource(p.resource).Namespace(p.key.Namespace)
	}
	return p.config.Dynamic.Resource(p.resource)
}

// forget drops all that is known of an XR that is gone.
func (r *Reconciler) forget(key types.NamespacedName) {
	r.session.Forget(key)
	if uid, ok := r.memory.forget(key); ok {
		r.config.Applier.Forget(uid)
	}
}

// startOver forgets what belongs to an earlier XR of the same name.
func (r *Reconciler) startOver(key types.NamespacedName, uid types.UID) {
	if earlier, ok := r.memory.claim(key, uid); ok {
		r.config.Applier.Forget(earlier)
	}
}
