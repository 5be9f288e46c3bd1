// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package function

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	fnv1 "github.com/crosswatch-io/crosswatch/api/fn/v1"
)

// What a step costs beyond the call of its function: from objects as informers
// keep them to a decoded and checked response, for a request of 20 KiB and a
// function that does nothing. Step and bare call alternate; the figures are
// medians of one run:
//
//	go test -run '^$' -bench RunnerOverhead ./internal/function | grep ^figure
func BenchmarkRunnerOverhead(b *testing.B) {
	s := serve(b, serverConfig{}, func(_ context.Context, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
		return &fnv1.RunFunctionResponse{
			Meta: &fnv1.ResponseMeta{Tag: req.GetMeta().GetTag(), Ttl: durationpb.New(time.Minute)}, Desired: req.GetDesired(), Context: req.GetContext(),
		}, nil
	})
	i := newInstalled()
	i.development("f", "passthrough:///"+s.address)
	connections := connect(b, i, nil)
	runner := newRunner(b, connections)
	in := newCluster()
	composite, composed := object("example.org/v1", "App", "ns", "xr"), deployments(12)

	request := func() *fnv1.RunFunctionRequest {
		state := &fnv1.State{Composite: &fnv1.Resource{Resource: view(b, composite)}, Resources: map[string]*fnv1.Resource{}}
		for i, obj := range composed {
			state.Resources[fmt.Sprintf("deployment-%d", i)] = &fnv1.Resource{Resource: view(b, obj)}
		}
		return &fnv1.RunFunctionRequest{Observed: state, Desired: &fnv1.State{}}
	}
	encoded, err := NewRequest(request())
	if err != nil {
		b.Fatal(err)
	}
	prepared, err := encoded.Decode()
	if err != nil {
		b.Fatal(err)
	}
	client := fnv1.NewFunctionRunnerServiceClient(bare(b, "passthrough:///"+s.address))

	var bares, steps []time.Duration
	for b.Loop() {
		began := time.Now()
		if _, err := client.RunFunction(b.Context(), prepared); err != nil {
			b.Fatal(err)
		}
		bares = append(bares, time.Since(began))

		began = time.Now()
		todo := step(in)
		todo.Request = request()
		if _, err := runner.Run(b.Context(), todo); err != nil {
			b.Fatal(err)
		}
		steps = append(steps, time.Since(began))
	}
	call, whole := median(bares), median(steps)
	fmt.Printf("\nfigure request=%.1f KiB\nfigure request_as_stored=%.1f KiB\n", kib(encoded.Size()), kib(encoded.Size()+stripped(b, composed)))
	fmt.Printf("figure bare_call=%.0f us\nfigure step=%.0f us\nfigure overhead=%.0f us\nfigure step_to_bare_call=%.2f ratio\n",
		micros(call), micros(whole), micros(whole-call), float64(whole)/float64(call))
}

func kib(n int) float64 { return float64(n) / kibibyte }

// stripped is how many bytes a request would have more if functions were shown
// objects as they are stored.
func stripped(b *testing.B, objects []*unstructured.Unstructured) int {
	b.Helper()
	bytes := 0
	for _, obj := range objects {
		var whole encoder
		if err := whole.fields(obj.Object); err != nil {
			b.Fatal(err)
		}
		bytes += len(whole.out) - proto.Size(view(b, obj))
	}
	return bytes
}

func median(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)/2]
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

func view(b testing.TB, obj *unstructured.Unstructured) *structpb.Struct {
	b.Helper()
	s, err := AsStruct(obj)
	if err != nil {
		b.Fatal(err)
	}
	return s
}

// deployments are like those that a cluster holds, some 2 KiB each.
func deployments(n int) []*unstructured.Unstructured {
	out := make([]*unstructured.Unstructured, n)
	for i := range out {
		obj := object("apps/v1", "Deployment", "ns", fmt.Sprintf("deployment-%d", i))
		obj.SetLabels(map[string]string{"app.kubernetes.io/name": "web", "app.kubernetes.io/part-of": "shop"})
		obj.SetUID("b2c9a1de-7f2b-4d6e-8d43-0f6f9a4f1c11")
		env := make([]any, 12)
		for j := range env {
			env[j] = map[string]any{"name": fmt.Sprintf("SETTING_%02d", j), "value": fmt.Sprintf("https://service-%02d.shop.svc:8443", j)}
		}
		obj.Object["spec"] = map[string]any{
			"replicas": int64(3),
			"selector": map[string]any{"matchLabels": map[string]any{"app.kubernetes.io/name": "web"}},
			"template": map[string]any{
				"metadata": map[string]any{"labels": map[string]any{"app.kubernetes.io/name": "web"}},
				"spec": map[string]any{"containers": []any{map[string]any{
					"name": "web", "image": "registry.example.org/shop/web:v1.2.3", "env": env,
					"ports":     []any{map[string]any{"name": "https", "containerPort": int64(8443), "protocol": "TCP"}},
					"resources": map[string]any{"requests": map[string]any{"cpu": "100m", "memory": "128Mi"}},
				}}},
			},
		}
		obj.Object["status"] = map[string]any{"replicas": int64(3), "readyReplicas": int64(3), "observedGeneration": int64(7)}
		addManagers(obj)
		out[i] = obj
	}
	return out
}

// addManagers notes that one manager applied the object's spec, and that
// another writes its status, as the API server does.
func addManagers(obj *unstructured.Unstructured) {
	entry := func(manager, operation, field string) map[string]any {
		return map[string]any{
			"manager": manager, "operation": operation, "apiVersion": obj.GetAPIVersion(), "time": "2026-01-02T03:04:05Z",
			"fieldsType": "FieldsV1", "fieldsV1": map[string]any{"f:" + field: managed(obj.Object[field])},
		}
	}
	obj.Object["metadata"].(map[string]any)["managedFields"] = []any{
		entry("apiextensions.crossplane.io/composed/"+strings.Repeat("0", 64), "Apply", "spec"), entry("kube-controller-manager", "Update", "status"),
	}
}

func managed(value any) map[string]any {
	fields := map[string]any{}
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v {
			fields["f:"+key] = managed(inner)
		}
	case []any:
		for _, inner := range v {
			if item, ok := inner.(map[string]any); ok {
				fields[fmt.Sprintf(`k:{"name":%q}`, item["name"])] = managed(item)
			}
		}
	}
	return fields
}

// bare is a connection without anything of ours.
func bare(b *testing.B, target string) *grpc.ClientConn {
	b.Helper()
	conn, err := grpc.NewClient(target, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = conn.Close() })
	return conn
}
