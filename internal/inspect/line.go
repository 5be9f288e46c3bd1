// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"encoding/json"
	"io"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	fnv1 "github.com/crosswatch-io/crosswatch/api/fn/v1"
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
	return encoder.Encode(lineOf(t.round))
}

func lineOf(r *round) line {
	apiVersion, kind := r.Kind.ToAPIVersionAndKind()
	l := line{
		Time:            r.Began.UTC().Format(time.RFC3339Nano),
		XR:              xr{APIVersion: apiVersion, Kind: kind, Namespace: r.XR.Namespace, Name: r.XR.Name},
		Step:            r.Step,
		Function:        r.Function,
		Round:           r.Round,
		Tag:             r.Tag,
		Kept:            r.Kept,
		DurationSeconds: r.Duration.Seconds(),
		TooLarge:        r.tooLarge,
	}
	if r.Request != nil {
		l.Request = picture(r.Request.ProtoReflect())
	}
	if r.Response != nil {
		l.Response = picture(r.Response.ProtoReflect())
	}
	if r.Err != nil {
		l.Error = r.Err.Error()
	}
	return l
}

// kindOf returns the kind of the XR that the request shows.
func kindOf(req *fnv1.RunFunctionRequest) schema.GroupVersionKind {
	fields := req.GetObserved().GetComposite().GetResource().GetFields()
	return schema.FromAPIVersionAndKind(fields["apiVersion"].GetStringValue(), fields["kind"].GetStringValue())
}
