// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package composer

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	v1 "github.com/crosswatch-io/crosswatch/api/apiextensions/v1"
	commonv1 "github.com/crosswatch-io/crosswatch/api/common/v1"
	"github.com/crosswatch-io/crosswatch/internal/dependency"
	"github.com/crosswatch-io/crosswatch/internal/function"
	"github.com/crosswatch-io/crosswatch/internal/xr"
)

// Objects are those of one kind, as its informer keeps them. What Get returns is
// shared and must not be changed; it is nil for an object that isn't there.
type Objects interface {
	Get(namespace, name string) *unstructured.Unstructured
	Resource() schema.GroupVersionResource
	Namespaced() bool
}

// A Recorder makes a reference a dependency of the XR, puts its kind's watch into
// service, and only then hands out what to read from. The error of a watch is an
// *engine.WatchError, and the reference is recorded all the same.
type Recorder interface {
	function.Requirer
	Depend(ctx context.Context, xr types.NamespacedName, composed dependency.Reference) (Objects, error)
}

// A StepRunner runs one step's function until it asks for nothing more.
type StepRunner interface {
	Run(ctx context.Context, step function.Step) (*function.Answer, error)
}

// Config holds what a Composer works with; all of it is required.
type Config struct {
	Runner  StepRunner
	Applier *Applier
	Client  dynamic.Interface
}

// A Composer takes XRs through their pipelines. It is safe for concurrent use
// for different XRs.
type Composer struct {
	runner  StepRunner
	applier *Applier
	client  dynamic.Interface
}

// New returns a Composer.
func New(c Config) *Composer {
	return &Composer{runner: c.Runner, applier: c.Applier, client: c.Client}
}

// Input is one XR to compose.
type Input struct {
	// XR as it is stored, a copy that is the run's own.
	XR xr.XR
	// Resource of the XR's kind.
	Resource schema.GroupVersionResource
	Scope    v1.Scope
	Revision *v1.CompositionRevision
	Record   Recorder
}

// Output is what a run came to. A run that fails fills in what it got to.
type Output struct {
	// XR as it is stored now: its references may have been written.
	XR xr.XR

	// Complete says that the run went through all phases, so that Status, Ready
	// and Resources are whole. Single resources may have failed.
	Complete bool
	// Status that the pipeline desires for the XR.
	Status map[string]any
	// Ready is the pipeline's own word on the XR, nil if it left that open.
	Ready *bool
	// Resources that the pipeline desires, sorted by name.
	Resources []ComposedStatus

	// Conditions that functions returned, sorted by type; never the engine's own.
	Conditions []commonv1.Condition
	// Results in the order in which they arose. A fatal one is the run's error instead.
	Results []Result

	// Wrote is what the run changed: composed resources, and the XR itself if what it
	// refers to is another now.
	Wrote []dependency.Reference

	// Expires is when the first of the steps' answers does that does; zero if none does.
	Expires time.Time

	// Composed and Required are the XR's record if the run succeeded.
	Composed []dependency.Reference
	Required []dependency.Requirement
}

// ComposedStatus is what became of one desired resource.
type ComposedStatus struct {
	// Name of the resource in the desired state.
	Name  string
	Ref   dependency.Reference
	Ready bool
	// Err says why the resource is not as it is desired.
	Err error
}

// Compose takes the XR through its pipeline. The error is a *FatalError if a
// function ended the run, and otherwise names what failed; where several
// resources did, it holds an error for each, sorted by the resources' names.
func (c *Composer) Compose(ctx context.Context, in Input) (Output, error) {
	r := &run{Composer: c, in: in, key: keyOfXR(in.XR), out: Output{XR: in.XR}}
	phases := []func(context.Context) error{r.observe, r.call, r.render, r.admit, r.collect, r.reference, r.apply}
	for _, phase := range phases {
		if err := phase(ctx); err != nil {
			return r.out, err
		}
	}
	r.out.Complete = true
	return r.out, r.failures()
}

// run is the scope of one pass through the phases.
type run struct {
	*Composer
	in  Input
	key types.NamespacedName
	out Output

	observed  []*observation // by observe, sorted by reference
	desired   desiredState   // by call
	resources []*resource    // by render, sorted by name
	leftovers []*observation // by collect: not desired, and still there
	undeleted []error        // by collect
}

func keyOfXR(x xr.XR) types.NamespacedName {
	return types.NamespacedName{Namespace: x.GetNamespace(), Name: x.GetName()}
}
