// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/crosswatch-io/crosswatch/test/installation"
)

const operatorUser = "system:serviceaccount:" + installation.Namespace + ":" + installation.ServiceAccount

// expectedRefusals are the resources that tests have the operator ask for in
// vain, on purpose.
type expectedRefusals struct {
	mu        sync.Mutex
	resources map[string]bool
}

// provokesRefusals tells that the test has the operator ask for a resource that
// it has no access to.
func (w *world) provokesRefusals(resource string) {
	e := &cluster.refusals
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.resources == nil {
		e.resources = map[string]bool{}
	}
	e.resources[resource] = true
}

// isOperators tells the operator's requests from those that tests make with its
// credentials.
func isOperators(entry *auditv1.Event) bool {
	return entry.User.Username == operatorUser && strings.HasPrefix(entry.UserAgent, "crosswatch")
}

// refusal is a word of each refused request's entry.
const refusal = string(metav1.StatusReasonForbidden)

func isRefusal(entry *auditv1.Event) bool {
	return entry.ResponseStatus != nil && entry.ResponseStatus.Code == http.StatusForbidden
}

// unexpectedRefusals returns the requests that the API server forbade the
// operator, but for those that tests provoked: what the operator does by itself
// it must be allowed to.
func (c *testCluster) unexpectedRefusals() ([]string, error) {
	refusals, err := c.auditLog.Entries(func(entry *auditv1.Event) bool {
		return isOperators(entry) && isRefusal(entry) &&
			(entry.ObjectRef == nil || !c.refusals.resources[entry.ObjectRef.Resource])
	}, refusal)
	refused := make([]string, 0, len(refusals))
	for _, entry := range refusals {
		refused = append(refused, fmt.Sprintf("%s %s: %s", entry.Verb, entry.RequestURI, entry.ResponseStatus.Message))
	}
	return refused, err
}
