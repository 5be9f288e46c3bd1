// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package functions

import (
	"slices"
	"sync"

	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/types"

	fnv1 "github.com/crosswatch-io/crosswatch/api/fn/v1"
)

// callLog keeps the requests of each XR.
type callLog struct {
	mu   sync.Mutex
	byXR map[types.NamespacedName][]*fnv1.RunFunctionRequest
}

func (l *callLog) record(req *fnv1.RunFunctionRequest) {
	kept := proto.CloneOf(req)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byXR == nil {
		l.byXR = map[types.NamespacedName][]*fnv1.RunFunctionRequest{}
	}
	xr := XR(req)
	l.byXR[xr] = append(l.byXR[xr], kept)
}

func (l *callLog) calls(xr types.NamespacedName) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.byXR[xr])
}

func (l *callLog) total() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	sum := 0
	for _, requests := range l.byXR {
		sum += len(requests)
	}
	return sum
}

// requests copies the list; the requests themselves are shared and never change.
func (l *callLog) requests(xr types.NamespacedName) []*fnv1.RunFunctionRequest {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.byXR[xr])
}

func (l *callLog) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.byXR = nil
}

// XR names the composite resource that a request is about. A cluster-scoped one
// has no namespace.
func XR(req *fnv1.RunFunctionRequest) types.NamespacedName {
	metadata := req.GetObserved().GetComposite().GetResource().GetFields()["metadata"].GetStructValue().GetFields()
	return types.NamespacedName{
		Namespace: metadata["namespace"].GetStringValue(),
		Name:      metadata["name"].GetStringValue(),
	}
}
