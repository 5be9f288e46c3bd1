// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package dependency

import (
	"testing"

	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

var (
	clusters = schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Cluster"}
	replicas = schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Replica"}
	secrets  = schema.GroupVersionKind{Version: "v1", Kind: "Secret"}
)

// object returns what the tracker reads of an object.
func object(namespace, name string, labels map[string]string) metav1.Object {
	return &metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels}
}
