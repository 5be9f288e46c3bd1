// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package watchserver

import (
	"encoding/json"
	"fmt"
	"slices"
	"sort"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// What a watch calls the changes of an object.
const (
	added    = "ADDED"
	modified = "MODIFIED"
	deleted  = "DELETED"
)

// mostEvents is how many a kind remembers. Who falls further behind must list.
const mostEvents = 1 << 17

// event is a change as watches tell it, encoded once for all of them.
type event struct {
	version uint64
	line    []byte
}

// kind is a kind that is served. Server.mu guards all of it.
type kind struct {
	Kind

	objects map[types.NamespacedName]*unstructured.Unstructured
	events  []event // since compacted, by version
	// compacted is the earliest version whose successors are all known.
	compacted uint64

	refusal int           // HTTP status of every answer, if not 0
	hung    chan struct{} // every answer waits for its end, if not nil

	// more is closed and replaced when there are events, ended when the open
	// watches end.
	more, ended chan struct{}
}

func newKind(k Kind, version uint64) *kind {
	return &kind{
		Kind:      k,
		objects:   map[types.NamespacedName]*unstructured.Unstructured{},
		compacted: version,
		more:      make(chan struct{}),
		ended:     make(chan struct{}),
	}
}

func (k *kind) store(what string, obj *unstructured.Unstructured, version uint64) {
	k.objects[nameOf(obj)] = obj
	k.tell(what, obj, version)
}

func (k *kind) remove(name types.NamespacedName, last *unstructured.Unstructured, version uint64) {
	delete(k.objects, name)
	k.tell(deleted, last, version)
}

func (k *kind) tell(what string, obj *unstructured.Unstructured, version uint64) {
	if len(k.events) == mostEvents {
		k.compacted = k.events[mostEvents/2-1].version
		k.events = slices.Clone(k.events[mostEvents/2:])
	}
	k.events = append(k.events, event{version, encodeEvent(what, obj.Object)})
	close(k.more)
	k.more = make(chan struct{})
}

func (k *kind) hang(hang bool) {
	switch {
	case hang && k.hung == nil:
		k.hung = make(chan struct{})
	case !hang && k.hung != nil:
		close(k.hung)
		k.hung = nil
	}
}

func (k *kind) cut() {
	close(k.ended)
	k.ended = make(chan struct{})
}

func (k *kind) compact(version uint64) {
	k.events, k.compacted = nil, version
}

// since returns the events after a version; known is false if some of them were
// forgotten. The slice is shared, and only ever appended to.
func (k *kind) since(version uint64) (events []event, known bool) {
	if version < k.compacted {
		return nil, false
	}
	first := sort.Search(len(k.events), func(i int) bool { return k.events[i].version > version })
	return k.events[first:len(k.events):len(k.events)], true
}

func encodeEvent(what string, object any) []byte {
	line, err := json.Marshal(map[string]any{"type": what, "object": object})
	if err != nil {
		panic(fmt.Sprintf("a test made an object that is no JSON: %v", err))
	}
	return append(line, '\n')
}
