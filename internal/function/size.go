// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package function

import (
	"cmp"
	"errors"
	"fmt"
	"math/bits"
	"regexp"
	"slices"
	"strconv"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	fnv1 "github.com/crosswatch-io/crosswatch/api/fn/v1"
)

// sdkMessageLimit is the largest request, in bytes, that a server built with the
// function SDKs accepts unless its author raised that.
const sdkMessageLimit = 4 << 20

const (
	kibibyte = 1 << 10
	mebibyte = 1 << 20
)

// A part of a request.
type part struct {
	name string
	size int
}

// refusedSize is how gRPC servers written in Go word that a request exceeds their
// limit.
var refusedSize = regexp.MustCompile(`larger than max \(\d+ vs\. (\d+)\)`)

// explainSize adds to a failed call what made its request large, if that is what
// it failed of. The size is rounded, since it changes with every object.
func explainSize(err error, req *Request) error {
	var failed *CallError
	if !errors.As(err, &failed) || failed.Code != codes.ResourceExhausted {
		return err
	}
	explained := *failed
	refused := refusedSize.FindStringSubmatch(failed.Cause)
	switch {
	case refused != nil:
		explained.Cause = fmt.Sprintf("it accepts requests of at most %s; servers built with the function SDKs do unless their author raised that",
			bytesOf(refused[1]))
	case req.Size() <= sdkMessageLimit:
		return err
	}
	most := largest(req.message)
	explained.Cause += fmt.Sprintf("; the request has more than %s, most of it %s: let it be less", powerOfTwo(req.Size()), most)
	return &explained
}

// nearly is the share of the largest part that others must have to be as large.
const nearly = 0.75

// largest returns the name of the part of a request that takes most or nearly as
// much; of several the first, so that it doesn't change with every object.
func largest(req *fnv1.RunFunctionRequest) string {
	parts := partsOf(req)
	most := slices.MaxFunc(parts, func(a, b part) int { return cmp.Compare(a.size, b.size) })
	parts = slices.DeleteFunc(parts, func(p part) bool { return float64(p.size) < nearly*float64(most.size) })
	return slices.MinFunc(parts, func(a, b part) int { return cmp.Compare(a.name, b.name) }).name
}

func partsOf(req *fnv1.RunFunctionRequest) []part {
	parts := make([]part, 0, 4+len(req.GetRequiredResources())+len(req.GetRequiredSchemas()))
	parts = append(parts, []part{
		{"the observed state", proto.Size(req.GetObserved())},
		{"the desired state of the steps before", proto.Size(req.GetDesired())},
		{"the context of the steps before", proto.Size(req.GetContext())},
		{"the step's input", proto.Size(req.GetInput())},
	}...)
	for name, found := range req.GetRequiredResources() {
		parts = append(parts, part{fmt.Sprintf("requirement %s in %s", quote(name), fieldResources), proto.Size(found)})
	}
	for name, found := range req.GetExtraResources() { //nolint:staticcheck // Older functions read nothing else.
		parts = append(parts, part{fmt.Sprintf("requirement %s in %s", quote(name), fieldExtraResources), proto.Size(found)})
	}
	for name, found := range req.GetRequiredSchemas() {
		parts = append(parts, part{fmt.Sprintf("requirement %s in %s", quote(name), fieldSchemas), proto.Size(found)})
	}
	return parts
}

// powerOfTwo rounds down to one.
func powerOfTwo(n int) string {
	return asSize(1 << (bits.Len(uint(n)) - 1))
}

func bytesOf(number string) string {
	n, err := strconv.Atoi(number)
	if err != nil {
		return number + " bytes"
	}
	return asSize(n)
}

// asSize rounds up to what a person would say.
func asSize(n int) string {
	if n < mebibyte {
		return fmt.Sprintf("%d KiB", (n+kibibyte-1)/kibibyte)
	}
	return fmt.Sprintf("%d MiB", (n+mebibyte-1)/mebibyte)
}
