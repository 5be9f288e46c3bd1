// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package function

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	fnv1 "github.com/crosswatch-io/crosswatch/api/fn/v1"
)

// told is an Inspector that keeps what it is told.
type told struct {
	t      *testing.T
	rounds []seenRound
}

type seenRound struct {
	Kind     string
	Step     string
	Function string
	Round    int
	Kept     bool
	Shown    int    // objects under the name "it" in the request
	Tag      string // that the response states; "none" without a response
	Err      string
}

func (i *told) Inspect(in Inspection) {
	req, err := in.Request.Decode()
	if err != nil {
		i.t.Fatal(err)
	}
	seen := seenRound{
		Kind: in.Kind.Kind, Step: in.Step, Function: in.Function, Round: in.Round, Kept: in.Kept,
		Shown: len(req.GetRequiredResources()["it"].GetItems()), Tag: "none",
	}
	if in.Response != nil {
		resp, err := NewResponse(in.Response)
		if err != nil {
			i.t.Fatal(err)
		}
		seen.Tag = resp.Message().GetMeta().GetTag()
	}
	if in.Err != nil {
		seen.Err = in.Err.Error()
	}
	i.rounds = append(i.rounds, seen)
}

func TestAnInspectorIsToldOfEachRound(t *testing.T) {
	want := resources(map[string]*fnv1.ResourceSelector{"it": byName("ns", "a")})
	base := seenRound{Kind: "App", Step: "step", Function: "f"}
	round := func(change func(*seenRound)) seenRound {
		r := base
		change(&r)
		return r
	}
	cases := map[string]struct {
		answer body
		runs   int
		want   []seenRound
	}{
		"AsksAndIsKept": {
			answer: says(time.Hour, want),
			runs:   2,
			want: []seenRound{
				round(func(r *seenRound) { r.Round = 1 }),
				round(func(r *seenRound) { r.Round, r.Shown = 2, 1 }),
				// The record of a run that nobody tracked seeds the next.
				round(func(r *seenRound) { r.Round, r.Shown, r.Kept = 1, 1, true }),
			},
		},
		"Fails": {
			answer: func(context.Context, *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
				return nil, errors.New("no")
			},
			runs: 1,
			want: []seenRound{round(func(r *seenRound) { r.Round, r.Tag, r.Err = 1, "none", "no" })},
		},
		"SaysWhatIsRefused": {
			answer: func(context.Context, *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
				return &fnv1.RunFunctionResponse{Meta: &fnv1.ResponseMeta{Tag: "other"}}, nil
			},
			runs: 1,
			want: []seenRound{round(func(r *seenRound) {
				r.Round, r.Tag = 1, "other"
				r.Err = `response of function "f": its tag is that of another request: the function must return the tag of the request it answers, or none`
			})},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			k := newKeeper(t, tc.answer)
			inspector := &told{t: t}
			k.config.Inspector = inspector
			in := newCluster(configMap("ns", "a", nil))
			for range tc.runs {
				todo := step(in)
				todo.Kind = schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "App"}
				_, _ = k.Run(t.Context(), todo)
			}
			if diff := cmp.Diff(tc.want, inspector.rounds); diff != "" {
				t.Errorf("rounds (-want +got):\n%s", diff)
			}
		})
	}
}
