// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package function

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
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
	fmt.Printf("\nfigure request=%.1f KiB\nfigure bare_call=%.0f us\nfigure step=%.0f us\nfigure overhead=%.0f us\n",
		float64(encoded.Size())/kibibyte, micros(call), micros(whole), micros(whole-call))
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
		out[i] = obj
	}
	return out
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
