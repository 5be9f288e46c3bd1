// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package composer

import (
	"context"
	"fmt"

	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	v1 "github.com/crosswatch-io/crosswatch/api/apiextensions/v1"
	fnv1 "github.com/crosswatch-io/crosswatch/api/fn/v1"
	"github.com/crosswatch-io/crosswatch/internal/dependency"
	"github.com/crosswatch-io/crosswatch/internal/function"
)

// desiredState is the last step's.
type desiredState map[string]*fnv1.Resource

// A FatalError is the word of a function that ended the run.
type FatalError struct{ Step, Message string }

func (e *FatalError) Error() string {
	return fmt.Sprintf("pipeline: step %q returned a fatal result: %s", e.Step, e.Message)
}

// call runs the pipeline. Each step is given the desired state and the context
// that the one before returned.
func (r *run) call(ctx context.Context) error {
	observed, err := r.observedState()
	if err != nil {
		return err
	}
	desired, pipelineContext := &fnv1.State{}, (*structpb.Struct)(nil)
	for _, step := range r.in.Revision.Spec.Pipeline {
		req := &fnv1.RunFunctionRequest{Observed: observed, Desired: desired, Context: pipelineContext}
		answer, err := r.callStep(ctx, step, req)
		if err != nil {
			return err
		}
		desired, pipelineContext = answer.GetDesired(), answer.GetContext()
		if desired == nil {
			desired = &fnv1.State{}
		}
	}
	r.desired = desired.GetResources()
	r.takeComposite(desired.GetComposite())
	return nil
}

func (r *run) callStep(ctx context.Context, step v1.PipelineStep, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
	var err error
	if req.Input, err = inputOf(step); err != nil {
		return nil, fmt.Errorf("pipeline: step %q: cannot read its input: %w", step.Step, err)
	}
	if req.Credentials, err = r.credentials(ctx, step); err != nil {
		return nil, fmt.Errorf("pipeline: step %q: %w", step.Step, err)
	}
	answer, err := r.runner.Run(ctx, function.Step{
		XR:        r.key,
		Kind:      r.in.XR.GroupVersionKind(),
		Name:      step.Step,
		Function:  step.FunctionRef.Name,
		Bootstrap: bootstrapOf(step),
		Request:   req,
		From:      r.in.Record,
	})
	if err != nil {
		return nil, fmt.Errorf("pipeline: %w", err)
	}
	r.out.Required = append(r.out.Required, answer.Requirements...)
	r.takeExpiry(answer)
	if err := r.takeResults(step.Step, answer.Response); err != nil {
		return nil, err
	}
	return answer.Response, nil
}

func (r *run) takeExpiry(answer *function.Answer) {
	if e := answer.Expires; !e.IsZero() && (r.out.Expires.IsZero() || e.Before(r.out.Expires)) {
		r.out.Expires = e
	}
}

// takeComposite keeps what counts of the desired composite. Its conditions and
// the engine's own status fields don't: functions return conditions apart.
func (r *run) takeComposite(composite *fnv1.Resource) {
	status := composite.GetResource().GetFields()["status"].GetStructValue()
	r.out.Status = toMap(status)
	delete(r.out.Status, "conditions")
	delete(r.out.Status, "lastHandledReconcileAt")
	switch composite.GetReady() {
	case fnv1.Ready_READY_TRUE:
		r.out.Ready = ptr.To(true)
	case fnv1.Ready_READY_FALSE:
		r.out.Ready = ptr.To(false)
	case fnv1.Ready_READY_UNSPECIFIED:
	}
}

// bootstrapOf returns what the Composition declares that a step requires. A
// schema's reference, its CRD, is for the runner to find.
func bootstrapOf(step v1.PipelineStep) []dependency.Requirement {
	if step.Requirements == nil {
		return nil
	}
	declared := step.Requirements
	out := make([]dependency.Requirement, 0, len(declared.RequiredResources)+len(declared.RequiredSchemas))
	for _, s := range declared.RequiredResources {
		ref := dependency.Reference{
			GVK:       schema.FromAPIVersionAndKind(s.APIVersion, s.Kind),
			Namespace: ptr.Deref(s.Namespace, ""),
			Name:      ptr.Deref(s.Name, ""),
		}
		if ref.Name == "" {
			ref.Labels = s.MatchLabels
		}
		out = append(out, dependency.Requirement{
			Step: step.Step, Name: s.RequirementName, From: dependency.Bootstrap, Reference: ref,
		})
	}
	for _, s := range declared.RequiredSchemas {
		out = append(out, dependency.Requirement{
			Step: step.Step, Name: s.RequirementName, From: dependency.Bootstrap,
			Subject: schema.FromAPIVersionAndKind(s.APIVersion, s.Kind),
		})
	}
	return out
}
