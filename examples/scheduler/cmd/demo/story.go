// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"
)

// story is told once. It keeps what happened and how long it took.
type story struct {
	*stage
	options options
	printer *printer

	scenes  []scene
	figures samples
}

// scene is one change and what followed from it.
type scene struct {
	change, result string
	took           time.Duration
}

// tell plays all scenes. It fails at the first that goes another way than told.
func (t *story) tell(ctx context.Context) error {
	t.printer.title("What happens, and how long after the change its result is there")
	parts := []func(context.Context) error{
		t.chatArrives,
		t.clusterBecomesReady,
		t.measure,
		t.embedArrives,
		t.notebookGoes,
		t.allIsWell,
	}
	for _, part := range parts {
		if err := part(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (t *story) chatArrives(ctx context.Context) error {
	err := t.scene(ctx,
		"Deployment team-a/chat asks for 2 replicas of 4 GPUs; 4 are free on east.",
		"chat-0 is scheduled on east, chat-1 is unschedulable",
		counted("team-a", "chat", 1, 1), t.create("chat.yaml"))
	if err != nil {
		return err
	}
	return t.awaitAll(ctx, placed("team-a", "chat-0", "east"), placed("team-a", "chat-1", ""))
}

func (t *story) clusterBecomesReady(ctx context.Context) error {
	if err := t.rest(ctx); err != nil {
		return err
	}
	err := t.scene(ctx,
		"Cluster west becomes ready.",
		"chat-1 is scheduled on west",
		placed("team-a", "chat-1", "west"), t.setReady("west", true))
	if err != nil {
		return err
	}
	return t.awaitAll(ctx, counted("team-a", "chat", 2, 0), placed("team-a", "chat-0", "east"))
}

func (t *story) embedArrives(ctx context.Context) error {
	err := t.scene(ctx,
		"Deployment team-b/embed asks for 2 replicas of 4 GPUs; 4 are free on west.",
		"embed-0 is scheduled on west, embed-1 is unschedulable",
		counted("team-b", "embed", 1, 1), t.create("embed.yaml"))
	if err != nil {
		return err
	}
	return t.awaitAll(ctx, placed("team-b", "embed-0", "west"), placed("team-b", "embed-1", ""))
}

func (t *story) notebookGoes(ctx context.Context) error {
	if err := t.rest(ctx); err != nil {
		return err
	}
	return t.scene(ctx,
		"Replica research/notebook, which had 4 GPUs of east, is deleted.",
		"embed-1 is scheduled on east",
		placed("team-b", "embed-1", "east"), func(ctx context.Context) error {
			return t.client.Resource(replicas).Namespace("research").Delete(ctx, "notebook", metav1.DeleteOptions{})
		})
}

// allIsWell asserts how things stand in the end.
func (t *story) allIsWell(ctx context.Context) error {
	return t.awaitAll(ctx,
		placed("team-a", "chat-0", "east"), placed("team-a", "chat-1", "west"),
		placed("team-b", "embed-0", "west"), placed("team-b", "embed-1", "east"),
		healthy("team-a", "chat"), healthy("team-b", "embed"),
		tracking(xrdName, 2),
	)
}

// scene makes a change, waits for its result and notes how long that took.
func (t *story) scene(ctx context.Context, change, result string, g sight, do func(context.Context) error) error {
	took, err := t.printer.scene(change, result, func() (time.Duration, error) { return t.time(ctx, g, do) })
	if err != nil {
		return err
	}
	t.scenes = append(t.scenes, scene{change: change, result: result, took: took})
	return nil
}

func (t *story) awaitAll(ctx context.Context, sights ...sight) error {
	for _, g := range sights {
		if err := t.await(ctx, g); err != nil {
			return err
		}
	}
	return nil
}

// create makes the object of one of the sample manifests.
func (t *story) create(file string) func(context.Context) error {
	return func(ctx context.Context) error {
		content, err := os.ReadFile(filepath.Join(t.options.manifests, "samples", file))
		if err != nil {
			return err
		}
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(content, &object.Object); err != nil {
			return fmt.Errorf("decode %s: %w", file, err)
		}
		_, err = t.client.Resource(deployments).Namespace(object.GetNamespace()).Create(ctx, object, metav1.CreateOptions{})
		return err
	}
}

// setReady makes a cluster take replicas, or no longer.
func (t *story) setReady(cluster string, ready bool) func(context.Context) error {
	return func(ctx context.Context) error {
		patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:"%t"}}}`, readyLabel, ready)
		_, err := t.client.Resource(clusters).Patch(ctx, cluster, types.MergePatchType, patch, metav1.PatchOptions{})
		return err
	}
}

// show prints what there is to be seen with kubectl, and all scenes once more.
func (t *story) show(ctx context.Context) error {
	t.printer.title("What kubectl shows")
	for _, args := range [][]string{
		{"get", "dependencywatchstatus"},
		{"get", "modeldeployments", "-A"},
		{"get", "modelreplicas", "-A"},
	} {
		output, err := t.plane.Kubectl(ctx, args...)
		if err != nil {
			return err
		}
		t.printer.command("kubectl", args, output)
	}
	t.printer.title("In short")
	t.printer.scenes(t.scenes)
	return nil
}
