// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"encoding/json"
	"io"
	"time"

	"github.com/crosswatch-io/crosswatch/internal/function"
)

// A line of the stream that shows a round.
type line struct {
	Time            string  `json:"time"`
	XR              xr      `json:"xr"`
	Step            string  `json:"step"`
	Function        string  `json:"function"`
	Round           int     `json:"round"`
	Tag             string  `json:"tag"`
	Kept            bool    `json:"kept"`
	DurationSeconds float64 `json:"durationSeconds"`
	TooLarge        bool    `json:"tooLarge,omitempty"`
	Request         any     `json:"request,omitempty"`
	Response        any     `json:"response,omitempty"`
	Error           string  `json:"error,omitempty"`
}

type xr struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
}

// A gap is a line of the stream that stands for rounds which were dropped.
type gap struct {
	Dropped uint64 `json:"dropped"`
}

// write what was taken as one line, or two. The order of keys is always the same.
func (t taken) write(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	if t.dropped > 0 {
		if err := encoder.Encode(gap{Dropped: t.dropped}); err != nil {
			return err
		}
	}
	if t.round == nil {
		return nil
	}
	l, err := lineOf(t.round)
	if err != nil {
		return err
	}
	return encoder.Encode(l)
}

func lineOf(r *round) (line, error) {
	apiVersion, kind := r.Kind.ToAPIVersionAndKind()
	l := line{
		Time:            r.Began.UTC().Format(time.RFC3339Nano),
		XR:              xr{APIVersion: apiVersion, Kind: kind, Namespace: r.XR.Namespace, Name: r.XR.Name},
		Step:            r.Step,
		Function:        r.Function,
		Round:           r.Round,
		Kept:            r.Kept,
		DurationSeconds: r.Duration.Seconds(),
		TooLarge:        r.tooLarge,
	}
	if r.Err != nil {
		l.Error = r.Err.Error()
	}
	if r.Request != nil {
		request, err := r.Request.Decode()
		if err != nil {
			return line{}, err
		}
		request.Meta = nil // the tag is told, and all else in it is always the same
		l.Request, l.Tag = picture(request.ProtoReflect()), r.Request.Tag()
	}
	if r.Response != nil {
		response, err := function.NewResponse(r.Response)
		if err != nil {
			return line{}, err
		}
		l.Response = picture(response.Message().ProtoReflect())
	}
	return l, nil
}
