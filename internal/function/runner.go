// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package function

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fnv1 "github.com/crosswatch-io/crosswatch/api/fn/v1"
	"github.com/crosswatch-io/crosswatch/internal/dependency"
)

// MaxCalls is how often one step may call its function in one run.
const MaxCalls = 6

// RunnerConfig is what a Runner needs.
type RunnerConfig struct {
	Caller  Caller
	Schemas *Schemas

	// Responses keeps what functions answer for as long as it is good.
	Responses *Responses

	// DefaultTTL replaces that of a response which states none.
	DefaultTTL time.Duration

	// Functions reads Functions and FunctionRevisions, for each step that runs.
	Functions client.Reader

	Clock clock.PassiveClock

	// Inspector is told of each round. It alone may be nil.
	Inspector Inspector
}

// A Runner runs steps of pipelines. It is safe for concurrent use.
type Runner struct {
	config   RunnerConfig
	flights  flights
	versions versions
}

// A Step of a pipeline, to run once for one XR.
type Step struct {
	XR       types.NamespacedName
	Kind     schema.GroupVersionKind // of the XR
	Name     string
	Function string

	// Bootstrap is what the Composition declares for the step. A requirement
	// with a Subject asks for the schema of that kind; its Reference is ignored.
	Bootstrap []dependency.Requirement

	// Request holds everything but its tag, its capabilities and what is
	// required, which the Runner adds to copies of its own.
	Request *fnv1.RunFunctionRequest

	From Requirer
}

// An Answer is what a step's last call returned.
type Answer struct {
	// Response is valid: see validate. Its FATAL results are the caller's matter.
	Response *fnv1.RunFunctionResponse

	// Requirements are what the last request carried and what its response asks
	// for, bootstrap requirements included, sorted. Only after a FATAL result
	// can the two differ. What only an earlier round showed the function on its
	// own request is among them as dependency.Shown.
	Requirements []dependency.Requirement

	// Expires is until when the response is good; zero if it must not be reused.
	Expires time.Time

	// Rounds that this took, those whose answers were kept included.
	Rounds int
}

// NewRunner returns a Runner, or an error that names what the config lacks.
func NewRunner(config RunnerConfig) (*Runner, error) {
	switch {
	case config.Caller == nil:
		return nil, errors.New("cannot run functions without a caller")
	case config.Schemas == nil:
		return nil, errors.New("cannot run functions without schemas")
	case config.Functions == nil:
		return nil, errors.New("cannot run functions without a reader for Functions")
	case config.Responses == nil:
		return nil, errors.New("cannot run functions without responses to keep")
	case config.Clock == nil:
		return nil, errors.New("cannot run functions without a clock")
	case config.DefaultTTL <= 0:
		return nil, errors.New("cannot run functions without a default TTL of responses")
	}
	return &Runner{config: config}, nil
}

// Run the step: call its function until it asks for nothing that it was not
// shown. A FATAL result ends that too, and is no error. What the step requires
// has been recorded through From when Run returns, with an error or without. An
// error of From can be found in the error's chain.
func (r *Runner) Run(ctx context.Context, step Step) (*Answer, error) {
	answer, err := r.run(ctx, step)
	if err != nil {
		return nil, fmt.Errorf("step %q: %w", step.Name, err)
	}
	return answer, nil
}

func (r *Runner) run(ctx context.Context, step Step) (*Answer, error) {
	fn, err := r.describe(ctx, step.Function)
	if err != nil {
		return nil, err
	}
	reads := newReads(step, r.config.Schemas)
	now, err := firstRound(ctx, step, reads)
	if err != nil {
		return nil, err
	}

	var shown []dependency.Requirement
	var difference string
	for rounds := 1; rounds <= MaxCalls; rounds++ {
		if now.trust == firm {
			shown = append(shown, requirementsOf(now.asked)...)
		}
		resp, err := r.respond(ctx, step, fn, now, rounds)
		if err != nil {
			return nil, err
		}
		asked, invalid := decodeRequirements(step.Name, resp.message.GetRequirements())
		if invalid == nil && now.settledBy(asked) {
			return r.answer(step, resp, withShown(now.requirements(), shown), rounds), nil
		}

		// Whatever comes of this answer, what it asks for is recorded.
		items := reads.take(ctx, asked)
		if isFatal(resp.message) {
			return r.answer(step, resp, withShown(merge(now.requirements(), requirementsOf(items)), shown), rounds), nil
		}
		if invalid != nil {
			return nil, fmt.Errorf("function %q: %w", step.Function, invalid)
		}
		if err := firstError(items); err != nil && !now.misled(asked) {
			return nil, err
		}
		difference = now.difference(asked)
		now = now.next(resp.message, items)
	}
	return nil, fmt.Errorf("function %q does not settle on what it requires: in call %d of %d %s", step.Function, MaxCalls, MaxCalls, difference)
}

// respond answers the round of that number, and tells the Inspector.
func (r *Runner) respond(ctx context.Context, step Step, fn installation, now *round, number int) (answered, error) {
	req, err := now.request(step.Request)
	if err != nil {
		return answered{}, err
	}
	began := r.config.Clock.Now()
	answer, err := r.obtain(ctx, step, fn, now, req)
	if r.config.Inspector == nil {
		return answer, err
	}
	seen := Inspection{
		XR: step.XR, Kind: step.Kind, Step: step.Name, Function: step.Function, Round: number,
		Kept: answer.kept, Began: began, Duration: r.config.Clock.Since(began), Request: req.bytes(), Err: err,
	}
	if answer.Response != nil {
		seen.Response = answer.encoded
	}
	r.config.Inspector.Inspect(seen)
	return answer, err
}

// obtain an answer: what is kept, what somebody else is being answered to the
// same, or else what a call comes to.
func (r *Runner) obtain(ctx context.Context, step Step, fn installation, now *round, req *Request) (answered, error) {
	if !fn.keeps {
		return r.call(ctx, step, fn, req)
	}
	key := responseKey{
		function: step.Function, version: fn.version, asReturned: fn.asReturned, forgotten: fn.forgotten, tag: req.Tag(),
	}
	own := false
	answer, err := r.flights.share(ctx, key, func() (answered, error) {
		if found, ok := r.config.Responses.take(key); ok {
			return found, nil
		}
		answer, known := now.given[key.tag]
		var err error
		if !known {
			own = true
			answer, err = r.call(ctx, step, fn, req)
		}
		if err == nil && now.reusable(step.Name, answer) && r.isStill(ctx, step.Function, fn) {
			r.config.Responses.put(key, answer)
		}
		return answer, err
	})
	answer.kept = !own && err == nil
	if err == nil && !answer.expires.IsZero() {
		now.given[key.tag] = answer
	}
	countLookup(step.Function, own)
	return answer, err
}

// call the function. A response that is refused comes with the error.
func (r *Runner) call(ctx context.Context, step Step, fn installation, req *Request) (answered, error) {
	resp, err := r.config.Caller.Call(ctx, step.Function, req)
	if err != nil {
		return answered{}, explainSize(err, req)
	}
	if err := validate(req.message, resp.message); err != nil {
		return answered{Response: resp}, fmt.Errorf("response of function %q: %w", step.Function, err)
	}
	return answered{Response: resp, expires: r.expiry(fn, resp.message)}, nil
}

func (r *Runner) answer(step Step, resp answered, requirements []dependency.Requirement, n int) *Answer {
	rounds.WithLabelValues(step.Function).Observe(float64(n))
	return &Answer{Response: resp.message, Requirements: requirements, Expires: resp.expires, Rounds: n}
}

func isFatal(resp *fnv1.RunFunctionResponse) bool {
	for _, result := range resp.GetResults() {
		if result.GetSeverity() == fnv1.Severity_SEVERITY_FATAL {
			return true
		}
	}
	return false
}
