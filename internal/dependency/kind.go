// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package dependency

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// A kind holds the entries that refer to one kind of object, by what finds them.
type kind struct {
	// names finds references by name.
	names map[types.NamespacedName]*entry

	// selectors finds references by labels when they are recorded and, under
	// the empty labels, those that match everything.
	selectors map[selector]*entry

	// pairs finds references by labels from an object. Each is filed under one
	// of its pairs, so that an object's labels lead to it once.
	pairs map[scopedPair][]*entry

	// holders are the records that hold any of the entries, and how many.
	holders map[*record]int

	at int // where index.stats has the kind
}

// A selector identifies a reference by labels within its kind.
type selector struct {
	namespace string
	labels    string // canonical
}

// A scopedPair is a label in a namespace, or in all where that is empty.
type scopedPair struct {
	namespace, key, value string
}

// An identity is what decides which references match an object.
type identity struct {
	namespace, name string
	labels          map[string]string
}

func newKind(at int) *kind {
	return &kind{
		at:        at,
		names:     map[types.NamespacedName]*entry{},
		selectors: map[selector]*entry{},
		pairs:     map[scopedPair][]*entry{},
		holders:   map[*record]int{},
	}
}

// entry returns the entry of the reference, which it makes if there is none.
func (k *kind) entry(ref Reference) *entry {
	if ref.Name != "" {
		return k.named(ref)
	}
	s := selector{namespace: ref.Namespace, labels: canonical(ref.Labels)}
	if e, ok := k.selectors[s]; ok {
		return e
	}
	if len(ref.Labels) == 0 {
		ref.Labels = nil
	}
	ref.Labels = maps.Clone(ref.Labels)
	e := &entry{reference: ref, holders: map[*record]uses{}}
	k.selectors[s] = e
	if len(ref.Labels) > 0 {
		e.filed = k.mostSelective(ref)
		k.pairs[e.filed] = append(k.pairs[e.filed], e)
	}
	return e
}

func (k *kind) named(ref Reference) *entry {
	key := types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}
	e, ok := k.names[key]
	if !ok {
		ref.Labels = nil
		e = &entry{reference: ref, holders: map[*record]uses{}}
		k.names[key] = e
	}
	return e
}

// mostSelective returns the pair of the reference under which the fewest others
// are filed, the first by key among equals: a pair that many selectors share
// would lead many objects to all of them.
func (k *kind) mostSelective(ref Reference) scopedPair {
	var best scopedPair
	fewest := -1
	for _, key := range slices.Sorted(maps.Keys(ref.Labels)) {
		p := scopedPair{namespace: ref.Namespace, key: key, value: ref.Labels[key]}
		if n := len(k.pairs[p]); fewest < 0 || n < fewest {
			best, fewest = p, n
		}
	}
	return best
}

// remove takes an entry out that nobody holds.
func (k *kind) remove(e *entry) {
	ref := e.reference
	if e.byName() {
		delete(k.names, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name})
		return
	}
	delete(k.selectors, selector{namespace: ref.Namespace, labels: canonical(ref.Labels)})
	if len(ref.Labels) == 0 {
		return
	}
	others := k.pairs[e.filed]
	i := slices.Index(others, e)
	others[i] = others[len(others)-1]
	others[len(others)-1] = nil
	if others = others[:len(others)-1]; len(others) == 0 {
		delete(k.pairs, e.filed)
		return
	}
	k.pairs[e.filed] = others
}

// match appends the XRs that hold a matching entry, once for each such entry,
// and says how many entries matched.
func (k *kind) match(dst []XR, obj identity) ([]XR, int) {
	entries := 0
	found := func(e *entry, ok bool) {
		if !ok {
			return
		}
		entries++
		for rec := range e.holders {
			dst = append(dst, rec.xr)
		}
	}

	e, ok := k.names[types.NamespacedName{Namespace: obj.namespace, Name: obj.name}]
	found(e, ok)
	for _, namespace := range obj.scopes() {
		e, ok := k.selectors[selector{namespace: namespace}]
		found(e, ok)
		for key, value := range obj.labels {
			for _, e := range k.pairs[scopedPair{namespace, key, value}] {
				found(e, carriesAll(obj.labels, e.reference.Labels))
			}
		}
	}
	return dst, entries
}

// scopes returns the namespaces of the label references that may match: those
// for all namespaces, and those for the object's own.
func (o identity) scopes() []string {
	scopes := [...]string{"", o.namespace}
	if o.namespace == "" {
		return scopes[:1]
	}
	return scopes[:]
}

func carriesAll(labels, wanted map[string]string) bool {
	for key, value := range wanted {
		if have, ok := labels[key]; !ok || have != value {
			return false
		}
	}
	return true
}
