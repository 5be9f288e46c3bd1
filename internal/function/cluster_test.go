// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package function

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/openapi"
	"k8s.io/client-go/openapi/openapitest"
	clocktesting "k8s.io/utils/clock/testing"

	fnv1 "github.com/crosswatch-io/crosswatch/api/fn/v1"
	"github.com/crosswatch-io/crosswatch/internal/dependency"
)

const defaultTTL = 4 * time.Hour

var testXR = types.NamespacedName{Namespace: "ns", Name: "xr"}

// cluster stands in for the engine: a real tracker, and objects where watches
// would keep them. It fails the test if something is read before it is recorded.
type cluster struct {
	tracker *dependency.Tracker
	errs    map[schema.GroupVersionKind]error

	mu      sync.Mutex // guards what follows
	objects []*unstructured.Unstructured
	reads   int
}

func newCluster(objects ...*unstructured.Unstructured) *cluster {
	return &cluster{
		tracker: dependency.NewTracker(),
		errs:    map[schema.GroupVersionKind]error{},
		objects: objects,
	}
}

func (c *cluster) Require(_ context.Context, xr types.NamespacedName, r dependency.Requirement) (Reader, error) {
	c.tracker.Require(xr, r)
	if err := c.errs[r.Reference.GVK]; err != nil {
		return nil, err
	}
	return &kindReader{cluster: c, kind: r.Reference.GVK}, nil
}

func (c *cluster) Requirements(xr types.NamespacedName, step string) []dependency.Requirement {
	return c.tracker.Requirements(xr, step)
}

func (c *cluster) add(objects ...*unstructured.Unstructured) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.objects = append(c.objects, objects...)
}

func (c *cluster) remove(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.objects = slices.DeleteFunc(c.objects, func(obj *unstructured.Unstructured) bool { return obj.GetName() == name })
}

type kindReader struct {
	cluster *cluster
	kind    schema.GroupVersionKind
}

func (r *kindReader) Get(namespace, name string) *unstructured.Unstructured {
	for _, obj := range r.List(namespace, nil) {
		if obj.GetNamespace() == namespace && obj.GetName() == name {
			return obj
		}
	}
	return nil
}

// List returns what was added last first: nobody may rely on an order.
func (r *kindReader) List(namespace string, labels map[string]string) []*unstructured.Unstructured {
	r.cluster.mu.Lock()
	defer r.cluster.mu.Unlock()
	r.cluster.reads++
	var out []*unstructured.Unstructured
	for _, obj := range slices.Backward(r.cluster.objects) {
		if obj.GroupVersionKind() == r.kind && (namespace == "" || obj.GetNamespace() == namespace) && carries(obj, labels) {
			out = append(out, obj)
		}
	}
	return out
}

func carries(obj *unstructured.Unstructured, labels map[string]string) bool {
	for key, value := range labels {
		if got, ok := obj.GetLabels()[key]; !ok || got != value {
			return false
		}
	}
	return true
}

// watchError is what the engine returns for a kind that it can't watch (yet).
type watchError struct {
	starting bool
}

func (e *watchError) Error() string { return "cannot watch it" }
func (e *watchError) Waiting() bool { return e.starting }

func configMap(namespace, name string, labels map[string]string) *unstructured.Unstructured {
	obj := object("v1", "ConfigMap", namespace, name)
	obj.SetLabels(labels)
	return obj
}

func object(apiVersion, kind, namespace, name string) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{}
	obj.SetAPIVersion(apiVersion)
	obj.SetKind(kind)
	obj.SetNamespace(namespace)
	obj.SetName(name)
	obj.SetResourceVersion("42")
	return obj
}

// newRunner runs functions by the caller.
func newRunner(t testing.TB, caller Caller) *Runner {
	t.Helper()
	clock := clocktesting.NewFakePassiveClock(time.Now())
	responses, err := NewResponses(ResponsesConfig{Bytes: DefaultResponsesBytes, Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(responses.Close)
	r, err := NewRunner(RunnerConfig{
		Caller:     caller,
		Responses:  responses,
		Clock:      clock,
		Schemas:    newSchemas(t, openapitest.NewEmbeddedFileClient()),
		DefaultTTL: defaultTTL,
		Functions:  newInstalled(),
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func newSchemas(t testing.TB, published openapi.Client) *Schemas {
	t.Helper()
	s, err := NewSchemas(SchemasConfig{Published: published, Clock: clocktesting.NewFakePassiveClock(time.Now())})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// step named "step" of an XR in the cluster.
func step(c *cluster) Step {
	return Step{XR: testXR, Name: "step", Function: "f", Request: &fnv1.RunFunctionRequest{}, From: c}
}

// A script is a Caller that plays a function without a connection, and keeps
// what it was shown.
type script struct {
	body     body
	requests []*fnv1.RunFunctionRequest
}

func (s *script) Call(ctx context.Context, function string, req *Request) (*Response, error) {
	if function != "f" {
		return nil, errors.New("unexpected function " + function)
	}
	message, err := req.Decode()
	if err != nil {
		return nil, err
	}
	s.requests = append(s.requests, message)
	resp, err := s.body(ctx, message)
	if err != nil || resp == nil {
		return nil, err
	}
	encoded, err := proto.Marshal(resp)
	if err != nil {
		return nil, err
	}
	return NewResponse(encoded)
}

// asks answers every request by asking for the same.
func asks(r *fnv1.Requirements) body {
	return func(context.Context, *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
		return &fnv1.RunFunctionResponse{Requirements: r}, nil
	}
}

func byName(namespace, name string) *fnv1.ResourceSelector {
	return &fnv1.ResourceSelector{ApiVersion: "v1", Kind: "ConfigMap", Namespace: &namespace, Match: &fnv1.ResourceSelector_MatchName{MatchName: name}}
}

func byLabels(labels map[string]string) *fnv1.ResourceSelector {
	return &fnv1.ResourceSelector{ApiVersion: "v1", Kind: "ConfigMap", Match: &fnv1.ResourceSelector_MatchLabels{MatchLabels: &fnv1.MatchLabels{Labels: labels}}}
}

func resources(selectors map[string]*fnv1.ResourceSelector) *fnv1.Requirements {
	return &fnv1.Requirements{Resources: selectors}
}
