// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package function

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	commonv1 "github.com/crosswatch-io/crosswatch/api/common/v1"
	pkgv1 "github.com/crosswatch-io/crosswatch/api/pkg/v1"
	"github.com/crosswatch-io/crosswatch/internal/apifault"
	"github.com/crosswatch-io/crosswatch/internal/function"
)

// reportDevelopment says that the Function is run by somebody else.
func reportDevelopment(fn *pkgv1.Function) {
	where := "at " + fn.Annotations[pkgv1.AnnotationRuntimeDevelopmentTarget]
	if where == "at " {
		where = "whose address the annotation " + pkgv1.AnnotationRuntimeDevelopmentTarget + " has to tell"
	}
	message := "the Function is annotated to run on a development server " + where
	fn.Status.CurrentRevision, fn.Status.CurrentIdentifier, fn.Status.ResolvedPackage = "", "", ""
	setConditions(fn,
		commonv1.True(commonv1.TypeInstalled, commonv1.ReasonDevelopmentRuntime).WithMessage(message),
		commonv1.Unknown(commonv1.TypeHealthy, commonv1.ReasonDevelopmentRuntime, message))
}

// reportUninstallable says why there is no revision for the Function's image. Its earlier revisions go on.
func reportUninstallable(fn *pkgv1.Function, cause error) {
	setConditions(fn, commonv1.False(commonv1.TypeInstalled, commonv1.ReasonUnpackingPackage, cause.Error()))
	if fn.Status.GetCondition(commonv1.TypeHealthy).Reason == "" {
		setConditions(fn, commonv1.Unknown(commonv1.TypeHealthy, commonv1.ReasonUnknownPackageRevisionHealth, "no revision was made yet"))
	}
}

// report says how the Function's revisions are, of which one is for its image, and why the Service that is named after it does not
// lead to them, which the operator itself does without.
func report(fn *pkgv1.Function, revisions []pkgv1.FunctionRevision, unserved error) {
	var current *pkgv1.FunctionRevision
	for i := range revisions {
		if revisions[i].Name == revisionName(fn) {
			current = &revisions[i]
		}
	}
	fn.Status.CurrentRevision = current.Name
	fn.Status.CurrentIdentifier = fn.Spec.Package
	fn.Status.ResolvedPackage = fn.Spec.Package
	is, runs := installed(current), healthy(current, function.InForce(revisions))
	if isDevelopment(fn) {
		is = saying(is, ignoresDevelopment)
	}
	if unserved != nil {
		runs = saying(runs, apifault.Text(unserved))
	}
	setConditions(fn, is, runs)
}

// ignoresDevelopment is about an annotation that would take a running Function out of service if it were followed in part.
const ignoresDevelopment = "the annotation " + pkgv1.AnnotationRuntime + " is ignored, since the operator was started without --allow-development-functions"

// saying adds to a condition's message.
func saying(c commonv1.Condition, more string) commonv1.Condition {
	return c.WithMessage(strings.TrimPrefix(c.Message+"; "+more, "; "))
}

func installed(current *pkgv1.FunctionRevision) commonv1.Condition {
	if current.Spec.DesiredState == pkgv1.RevisionActive {
		return commonv1.True(commonv1.TypeInstalled, commonv1.ReasonActivePackageRevision)
	}
	return commonv1.False(commonv1.TypeInstalled, commonv1.ReasonInactivePackageRevision, fmt.Sprintf(
		"FunctionRevision %q is new and inactive: set its spec.desiredState to %s", current.Name, pkgv1.RevisionActive))
}

// healthy is that of the revision that is to be called. While it can't be, another may serve.
func healthy(current, inForce *pkgv1.FunctionRevision) commonv1.Condition {
	judged := current
	if judged.Spec.DesiredState != pkgv1.RevisionActive {
		judged = inForce
	}
	if judged == nil {
		return commonv1.Unknown(commonv1.TypeHealthy, commonv1.ReasonUnknownPackageRevisionHealth, "no FunctionRevision is active")
	}
	runtime := judged.Status.GetCondition(commonv1.TypeRuntimeHealthy)
	if runtime.Status == corev1.ConditionTrue {
		return commonv1.True(commonv1.TypeHealthy, commonv1.ReasonHealthyPackageRevision)
	}
	message := fmt.Sprintf("FunctionRevision %q does not run yet", judged.Name)
	if runtime.Message != "" {
		message = fmt.Sprintf("FunctionRevision %q: %s", judged.Name, runtime.Message)
	}
	if inForce != nil && inForce != judged && inForce.Name != judged.Name {
		message += fmt.Sprintf("; FunctionRevision %q serves meanwhile", inForce.Name)
	}
	if runtime.Status == corev1.ConditionFalse {
		return commonv1.False(commonv1.TypeHealthy, commonv1.ReasonUnhealthyPackageRevision, message)
	}
	return commonv1.Unknown(commonv1.TypeHealthy, commonv1.ReasonUnknownPackageRevisionHealth, message)
}
