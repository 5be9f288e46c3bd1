// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package function

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pkgv1 "github.com/crosswatch-io/crosswatch/api/pkg/v1"
)

// Labels of the objects that run functions. The last one is that of all objects which the operator keeps in its own namespace: it
// reads no others.
const (
	labelFunction = "pkg.crossplane.io/function"
	labelRevision = "pkg.crossplane.io/revision"

	LabelManagedBy = "app.kubernetes.io/managed-by"
	ManagedBy      = "crosswatch"
)

// AuthoritySecretName is the Secret with the authority that signs the certificates of functions and of the operator.
const AuthoritySecretName = "crossplane-root-ca"

// What a function's container finds, whatever runs it.
const (
	containerName   = "package-runtime"
	portName        = "grpc"
	port            = 9443
	certificatesDir = "/tls/server"
)

// revisionHashLength is how much of a hash a revision's name has.
const revisionHashLength = 12

// revisionName returns the name of a Function's revision for its image, which is that of a Deployment and of a Service, too. The
// name of the Function is in the hash because only what a Service can be named after is left of it outside.
func revisionName(fn *pkgv1.Function) string {
	sum := sha256.Sum256([]byte(fn.Name + "\x00" + fn.Spec.Package))
	prefix := strings.ReplaceAll(fn.Name, ".", "-")
	if len(validation.IsDNS1035Label(prefix[:1])) > 0 {
		prefix = "f" + prefix
	}
	prefix = prefix[:min(len(prefix), validation.DNS1035LabelMaxLength-revisionHashLength-1)]
	return strings.TrimRight(prefix, "-") + "-" + hex.EncodeToString(sum[:])[:revisionHashLength]
}

// serverSecretName returns the name of the Secret that a revision serves with.
func serverSecretName(revision string) string { return revision + "-tls-server" }

// canNameService reports whether a Service can have the name of the Function.
func canNameService(function string) bool { return len(validation.IsDNS1035Label(function)) == 0 }

// dnsNames are those that lead to a Service.
func dnsNames(service, namespace string) []string {
	return []string{service, service + "." + namespace, service + "." + namespace + ".svc"}
}

// functionOwning returns the name of the Function that controls the object; "" if none does.
func functionOwning(object client.Object) string {
	owner := metav1.GetControllerOfNoCopy(object)
	if owner == nil || owner.Kind != pkgv1.KindFunction || !strings.HasPrefix(owner.APIVersion, pkgv1.GroupVersion.Group+"/") {
		return ""
	}
	return owner.Name
}
