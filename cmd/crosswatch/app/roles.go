// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/fields"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/crosswatch-io/crosswatch/controllers/definition"
	"github.com/crosswatch-io/crosswatch/internal/store"
)

// roleComposed gathers what platforms let the operator compose and require.
const roleComposed = "crosswatch-composed"

// A field selector by name is authorised like a request for that name, so that no other role can be listed.
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=clusterroles,resourceNames=crosswatch-composed,verbs=list;watch

// roleCache keeps one ClusterRole. RBAC allows a list of one object by its name, but none of several: so each has its own cache.
type roleCache struct{ cache.Cache }

// GetCache lets the manager start it before any controller.
func (c roleCache) GetCache() cache.Cache { return c.Cache }

// addRoleCaches adds the caches of the ClusterRoles that the operator follows to the manager.
func addRoleCaches(ctx context.Context, mgr ctrl.Manager) (map[string]cache.Cache, error) {
	caches := map[string]cache.Cache{}
	for _, name := range []string{roleComposed, definition.RoleComposites, definition.RoleView, definition.RoleEdit} {
		c, err := newRoleCache(ctx, mgr, name)
		if err != nil {
			return nil, fmt.Errorf("cannot watch ClusterRole %q: %w", name, err)
		}
		caches[name] = c
	}
	return caches, nil
}

func newRoleCache(ctx context.Context, mgr ctrl.Manager, name string) (cache.Cache, error) {
	c, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient:                  mgr.GetHTTPClient(),
		Scheme:                      mgr.GetScheme(),
		Mapper:                      mgr.GetRESTMapper(),
		ReaderFailOnMissingInformer: true,
		NewInformer:                 store.NewInformer,
		DefaultFieldSelector:        fields.OneTermEqualSelector("metadata.name", name),
		DefaultTransform:            cache.TransformStripManagedFields(),
	})
	if err != nil {
		return nil, err
	}
	if _, err := c.GetInformer(ctx, &rbacv1.ClusterRole{}, cache.BlockUntilSynced(false)); err != nil {
		return nil, err
	}
	return c, mgr.Add(roleCache{c})
}

// onRules has f called when the role gets other rules than it had.
func onRules(ctx context.Context, c cache.Cache, f func()) error {
	informer, err := c.GetInformer(ctx, &rbacv1.ClusterRole{}, cache.BlockUntilSynced(false))
	if err != nil {
		return err
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(_ any, initial bool) {
			if !initial {
				f()
			}
		},
		UpdateFunc: func(before, after any) {
			if !equality.Semantic.DeepEqual(before.(*rbacv1.ClusterRole).Rules, after.(*rbacv1.ClusterRole).Rules) {
				f()
			}
		},
	})
	return err
}
