// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package function

import (
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	pkgv1 "github.com/crosswatch-io/crosswatch/api/pkg/v1"
)

var functionKind = pkgv1.GroupVersion.WithKind(pkgv1.KindFunction)

// A plan says what the revision for a Function's image is to become. It shares no memory with the Function.
type plan struct {
	have *pkgv1.FunctionRevision // nil: it has to be created
	want *pkgv1.FunctionRevision
}

func (p plan) isNothing() bool { return p.have != nil && equality.Semantic.DeepEqual(p.have, p.want) }

// planFor looks for the image among the Function's revisions: its revision must be there, be the newest, and say what the Function
// says. One that nobody controls, as after a restore from a backup, is taken over.
func planFor(fn *pkgv1.Function, revisions []pkgv1.FunctionRevision) plan {
	name := revisionName(fn)
	var highest int64 // of the others
	var p plan
	for i := range revisions {
		if r := &revisions[i]; r.Name == name && mayUse(fn, r) {
			p.have = r
		} else {
			highest = max(highest, r.Spec.Revision)
		}
	}
	if p.have == nil {
		p.want = &pkgv1.FunctionRevision{ObjectMeta: metav1.ObjectMeta{Name: name}}
	} else {
		p.want = p.have.DeepCopy()
	}
	complete(p.want, fn.DeepCopy())
	if p.want.Spec.Revision <= highest {
		p.want.Spec.Revision = highest + 1
	}
	return p
}

func mayUse(fn *pkgv1.Function, revision *pkgv1.FunctionRevision) bool {
	owner := metav1.GetControllerOf(revision)
	return owner == nil || owner.UID == fn.UID
}

// complete says in the revision what the Function says. A revision that people activate keeps the state it has.
func complete(revision *pkgv1.FunctionRevision, fn *pkgv1.Function) {
	metav1.SetMetaDataLabel(&revision.ObjectMeta, pkgv1.LabelParentPackage, fn.Name)
	if metav1.GetControllerOf(revision) == nil {
		revision.OwnerReferences = append(revision.OwnerReferences, *metav1.NewControllerRef(fn, functionKind))
	}
	spec := &revision.Spec
	switch {
	case isAutomatic(fn):
		spec.DesiredState = pkgv1.RevisionActive
	case spec.DesiredState == "":
		spec.DesiredState = pkgv1.RevisionInactive
	}
	spec.Image = fn.Spec.Package
	spec.PackagePullPolicy = fn.Spec.PackagePullPolicy
	spec.PackagePullSecrets = fn.Spec.PackagePullSecrets
	spec.IgnoreCrossplaneConstraints = fn.Spec.IgnoreCrossplaneConstraints
	spec.SkipDependencyResolution = fn.Spec.SkipDependencyResolution
	spec.CommonLabels = fn.Spec.CommonLabels
	spec.CommonAnnotations = fn.Spec.CommonAnnotations
	spec.RuntimeConfigRef = fn.Spec.RuntimeConfigRef
	spec.TLSServerSecretName = ptr.To(serverSecretName(revision.Name))
}

func isAutomatic(fn *pkgv1.Function) bool {
	return ptr.Deref(fn.Spec.RevisionActivationPolicy, pkgv1.ActivationAutomatic) == pkgv1.ActivationAutomatic
}
