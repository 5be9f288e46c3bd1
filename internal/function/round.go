// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package function

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/types/known/structpb"

	fnv1 "github.com/crosswatch-io/crosswatch/api/fn/v1"
	"github.com/crosswatch-io/crosswatch/internal/dependency"
)

// maxDifference is how many requirements an error lists of each kind.
const maxDifference = 5

// A trust says whether the function wants what a round shows it.
type trust uint8

const (
	// seeded is shown unasked. The function must ask for all of it.
	seeded trust = iota
	// doubtful was asked for in view of seeds of which the function doesn't want
	// all, and perhaps only because of those. It must ask for all of it again.
	doubtful
	// firm was asked for of the function's own accord.
	firm
)

// A round is what one call of a step's function shows it beyond the step's own
// request.
type round struct {
	bootstrap []item
	asked     []item // by the answer of the round before; of the first round: the seeds

	trust trust

	partial bool // a seed could not be read, and is left out

	context *structpb.Struct // of the answer of the round before

	// given are the answers of this run that may be reused, by their requests'
	// tags: a round without seeds can lead back to what was shown with them.
	given map[string]answered
}

func firstRound(ctx context.Context, step Step, reads *reads) (*round, error) {
	seeds := step.From.Requirements(step.XR, step.Name)
	wanted := make([]dependency.Requirement, 0, len(step.Bootstrap)+len(seeds))
	for _, b := range step.Bootstrap {
		b.Step, b.From = step.Name, dependency.Bootstrap
		if field(b) == fieldSchemas {
			b.Reference = likelyDefinition(b.Subject)
		}
		wanted = append(wanted, b)
	}
	for _, seed := range seeds {
		if seed.From.Seeded() {
			wanted = append(wanted, seed)
		}
	}

	items := reads.take(ctx, wanted)
	first := &round{bootstrap: items[:len(step.Bootstrap)], context: step.Request.GetContext(), given: map[string]answered{}}
	if err := firstError(first.bootstrap); err != nil {
		return nil, err
	}
	for _, seed := range items[len(step.Bootstrap):] {
		if seed.err == nil {
			first.asked = append(first.asked, seed)
			continue
		}
		if hopeful(ctx, seed.err) {
			return nil, seed.err
		}
		first.partial = true
	}
	return first, nil
}

// hopeful tells whether it is better to end the run than to go on without the
// seed, since the next run can read it.
func hopeful(ctx context.Context, err error) bool {
	var w waitingError
	return ctx.Err() != nil || errors.As(err, &w) && w.Waiting()
}

// next is the round that shows the function what its answer asked for.
func (r *round) next(resp *fnv1.RunFunctionResponse, items []item) *round {
	next := &round{bootstrap: r.bootstrap, asked: items, trust: firm, context: resp.GetContext(), given: r.given}
	if !r.misled(requirementsOf(items)) {
		return next
	}
	if r.trust == seeded && firstError(items) == nil {
		next.trust = doubtful
		return next
	}
	// Stale seeds could lead on to one another for ever, or to what can't be
	// read. Start over without any.
	next.asked = nil
	return next
}

// misled tells whether an answer was given in view of something stale.
func (r *round) misled(asked []dependency.Requirement) bool {
	return r.trust != firm && r.unclaimed(asked)
}

// request returns the step's request for this round, which shares what is
// immutable with it.
func (r *round) request(step *fnv1.RunFunctionRequest) (*Request, error) {
	req := &fnv1.RunFunctionRequest{
		Observed:    step.GetObserved(),
		Desired:     step.GetDesired(),
		Input:       step.GetInput(),
		Context:     r.context,
		Credentials: step.GetCredentials(),

		ExtraResources:    map[string]*fnv1.Resources{}, //nolint:staticcheck // Older functions read nothing else.
		RequiredResources: map[string]*fnv1.Resources{},
		RequiredSchemas:   map[string]*fnv1.Schema{},
	}
	// What the function asks for itself takes precedence over what the
	// Composition declares under the same name.
	for _, items := range [][]item{r.bootstrap, r.asked} {
		for _, it := range items {
			it.putInto(req)
		}
	}
	return NewRequest(req)
}

// settledBy tells whether an answer asks for nothing that this round didn't
// show, and for all that it must.
func (r *round) settledBy(asked []dependency.Requirement) bool {
	shown := map[slot]dependency.Requirement{}
	for _, items := range [][]item{r.bootstrap, r.asked} {
		for _, it := range items {
			shown[slotOf(it.requirement)] = it.requirement
		}
	}
	for _, a := range asked {
		if s, ok := shown[slotOf(a)]; !ok || !sameSelector(s, a) {
			return false
		}
	}
	return !r.misled(asked)
}

// reusable tells whether the next run that is shown the same may be given the
// answer to this round: it asks for nothing more, is no FATAL one, and not in view
// of seeds of which some could not be read.
func (r *round) reusable(step string, answer answered) bool {
	if r.partial || isFatal(answer.message) {
		return false
	}
	asked, invalid := decodeRequirements(step, answer.message.GetRequirements())
	return invalid == nil && r.settledBy(asked)
}

// unclaimed tells whether an answer doesn't ask for all that this round showed,
// bootstrap requirements apart.
func (r *round) unclaimed(asked []dependency.Requirement) bool {
	claimed := map[slot]bool{}
	for _, a := range asked {
		claimed[slotOf(a)] = true
	}
	return slices.ContainsFunc(r.asked, func(it item) bool { return !claimed[slotOf(it.requirement)] })
}

// requirements of this round, sorted.
func (r *round) requirements() []dependency.Requirement {
	return merge(requirementsOf(r.bootstrap), requirementsOf(r.asked))
}

func requirementsOf(items []item) []dependency.Requirement {
	out := make([]dependency.Requirement, len(items))
	for i, it := range items {
		out[i] = it.requirement
	}
	return out
}

// difference says what an answer asks for that this round did not show, and
// what it no longer asks for.
func (r *round) difference(asked []dependency.Requirement) string {
	before := requirementsOf(r.asked)
	return fmt.Sprintf("it asked for %s, and no longer for %s", list(without(asked, before)), list(without(before, asked)))
}

// without returns what of a isn't in b.
func without(a, b []dependency.Requirement) []string {
	in := map[slot]dependency.Requirement{}
	for _, r := range b {
		in[slotOf(r)] = r
	}
	out := make([]string, 0, len(a))
	for _, r := range a {
		if other, ok := in[slotOf(r)]; !ok || !sameSelector(r, other) {
			out = append(out, describeSelector(r))
		}
	}
	return out
}

func list(all []string) string {
	switch {
	case len(all) == 0:
		return "nothing"
	case len(all) > maxDifference:
		return fmt.Sprintf("%s and %d more", strings.Join(all[:maxDifference], ", "), len(all)-maxDifference)
	default:
		return strings.Join(all, ", ")
	}
}
