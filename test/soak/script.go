// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// The small world in which everything happens: so small that changes meet.
var (
	XRKinds = []string{"Alpha", "Beta"}
	// SilentKind writes no status: a write of its own would run an XR once more, and
	// hide what the run before missed.
	SilentKind = "Beta"
	ThingKinds = []string{"Thing", "Widget", "Gadget", "Node"}
	// RareKinds are required so seldom that sweeps stop their watches.
	RareKinds    = []string{"Comet", "Eclipse", "Meteor", "Nova", "Quasar", "Rainbow", "Aurora", "Halo", "Corona", "Transit"}
	ComposedKind = "Composed"
	ClusterKind  = "Node"
	rareNames    = []string{"first", "second"}
	Namespaces   = []string{"north", "south"}
	colors       = []string{"red", "green", "blue"}
)

const namesPerKind = 12

// Objects is where a script's objects are.
type Objects interface {
	// Object returns one, or nil. It must not be changed.
	Object(gvk schema.GroupVersionKind, name types.NamespacedName) *unstructured.Unstructured
	// Names returns those of all objects of a kind, sorted.
	Names(gvk schema.GroupVersionKind) []types.NamespacedName
	// Put creates or changes an object. Changed says that it is another than before.
	Put(obj *unstructured.Unstructured) (stored *unstructured.Unstructured, changed bool, err error)
	// Delete says whether there was such an object.
	Delete(gvk schema.GroupVersionKind, name types.NamespacedName) bool
}

// Script changes objects at random. One goroutine uses it.
type Script struct {
	Rand *rand.Rand
	// Mix is what happens how often.
	Mix []Weighted
	// XRs is how many there can be of a kind.
	XRs int
	// Changes counts those of objects.
	Changes int

	objects Objects
}

// NewScript returns one that does the same for the same seed, as far as the objects
// are the same.
func NewScript(seed uint64, objects Objects) *Script {
	return &Script{
		Rand:    rand.New(rand.NewPCG(seed, seed)), //nolint:gosec // to be repeated
		Mix:     ordinary,
		XRs:     40,
		objects: objects,
	}
}

// AllKinds are those that there are.
func AllKinds() []string {
	return slices.Concat([]string{ComposedKind}, XRKinds, ThingKinds, RareKinds)
}

// Resource is the plural of a kind.
func Resource(kind string) string { return strings.ToLower(kind) + "s" }

// Weighted is something to do, more often the more it weighs.
type Weighted struct {
	Weight int
	Do     func(*Script)
}

// ordinary is what happens to objects all the time.
var ordinary = []Weighted{
	{60, (*Script).changeValue},
	{8, (*Script).deleteThing},
	{10, (*Script).relabel},
	{6, (*Script).repoint},
	{5, (*Script).addXR},
	{3, (*Script).removeXR},
	{5, (*Script).replan},
	{2, (*Script).undo},
	{1, (*Script).burst},
}

// References is a mix in which only XRs change.
var References = []Weighted{{4, (*Script).addXR}, {2, (*Script).removeXR}, {4, (*Script).replan}}

// Change changes something.
func (s *Script) Change() { s.One(s.Mix) }

// One does one of these.
func (s *Script) One(of []Weighted) {
	total := 0
	for _, w := range of {
		total += w.Weight
	}
	at := s.Rand.IntN(total)
	for _, w := range of {
		if at -= w.Weight; at < 0 {
			w.Do(s)
			return
		}
	}
}

// Pick picks one of these.
func Pick[T any](s *Script, of []T) T { return of[s.Rand.IntN(len(of))] }

// Kind picks one that XRs require or compose; those of XRs, seldom.
func (s *Script) Kind() string {
	if s.Rand.IntN(10) == 0 {
		return Pick(s, XRKinds)
	}
	return Pick(s, slices.Concat([]string{ComposedKind}, ThingKinds, RareKinds))
}

// place picks the identity of a thing.
func (s *Script) place() (kind string, name types.NamespacedName) {
	if s.Rand.IntN(25) == 0 {
		return Pick(s, RareKinds), types.NamespacedName{Namespace: Pick(s, Namespaces), Name: Pick(s, rareNames)}
	}
	kind = Pick(s, ThingKinds)
	name.Name = "n" + strconv.Itoa(s.Rand.IntN(namesPerKind))
	if kind != ClusterKind {
		name.Namespace = Pick(s, Namespaces)
	}
	return kind, name
}

// put stores an object. What is withdrawn can't be changed.
func (s *Script) put(obj *unstructured.Unstructured) {
	_, changed, err := s.objects.Put(obj)
	if changed {
		s.Changes++
	}
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		panic(err)
	}
}

func (s *Script) delete(kind string, name types.NamespacedName) {
	if s.objects.Delete(GVK(kind), name) {
		s.Changes++
	}
}

// edit changes a thing, which it creates if there is none.
func (s *Script) edit(kind string, name types.NamespacedName, change func(labels, spec map[string]any)) {
	labels, spec := map[string]any{}, map[string]any{}
	if old := s.objects.Object(GVK(kind), name); old != nil {
		if l, ok, _ := unstructured.NestedMap(old.Object, "metadata", "labels"); ok {
			labels = l
		}
		spec = maps.Clone(old.Object["spec"].(map[string]any))
	} else {
		labels["color"] = Pick(s, colors)
	}
	change(labels, spec)
	obj := Thing(kind, name.Namespace, name.Name, labels, "", "")
	obj.Object["spec"] = spec
	s.put(obj)
}

func (s *Script) changeValue() {
	kind, name := s.place()
	s.edit(kind, name, func(_, spec map[string]any) { spec["value"] = s.value() })
}

func (s *Script) value() string { return strconv.FormatUint(s.Rand.Uint64(), 36) }

func (s *Script) deleteThing() {
	kind, name := s.place()
	s.delete(kind, name)
}

func (s *Script) relabel() {
	kind, name := s.place()
	s.edit(kind, name, func(labels, _ map[string]any) { labels["color"] = Pick(s, colors) })
}

func (s *Script) repoint() {
	kind, name := s.place()
	s.edit(kind, name, func(_, spec map[string]any) { spec["next"] = "n" + strconv.Itoa(s.Rand.IntN(namesPerKind)) })
}

// burst changes one thing as fast as it can.
func (s *Script) burst() {
	kind, name := s.place()
	for range 50 {
		s.edit(kind, name, func(_, spec map[string]any) { spec["value"] = s.value() })
	}
}

// Touch changes once whatever is rare, and everything of one kind that isn't. An XR
// that does not hear of such a kind may have nothing else to wake it.
func (s *Script) Touch() {
	change := func(kind string, name types.NamespacedName) {
		s.edit(kind, name, func(_, spec map[string]any) { spec["value"] = s.value() })
	}
	kind := Pick(s, ThingKinds)
	for _, name := range s.objects.Names(GVK(kind)) {
		change(kind, name)
	}
	for _, kind := range RareKinds {
		for _, namespace := range Namespaces {
			for _, name := range rareNames {
				change(kind, types.NamespacedName{Namespace: namespace, Name: name})
			}
		}
	}
}

// undo changes or deletes, as others do, what an XR composes.
func (s *Script) undo() {
	name, ok := s.any(ComposedKind)
	if !ok {
		return
	}
	if s.Rand.IntN(2) == 0 {
		s.delete(ComposedKind, name)
		return
	}
	s.edit(ComposedKind, name, func(_, spec map[string]any) { spec["value"] = s.value() })
}

// any picks an object of the kind.
func (s *Script) any(kind string) (types.NamespacedName, bool) {
	names := s.objects.Names(GVK(kind))
	if len(names) == 0 {
		return types.NamespacedName{}, false
	}
	return Pick(s, names), true
}

func (s *Script) addXR() {
	kind := Pick(s, XRKinds)
	name := types.NamespacedName{Namespace: Pick(s, Namespaces), Name: "x" + strconv.Itoa(s.Rand.IntN(s.XRs/len(Namespaces)))}
	if s.objects.Object(GVK(kind), name) == nil {
		s.plan(kind, name)
	}
}

func (s *Script) removeXR() {
	kind := Pick(s, XRKinds)
	if name, ok := s.any(kind); ok {
		s.delete(kind, name)
	}
}

func (s *Script) replan() {
	kind := Pick(s, XRKinds)
	if name, ok := s.any(kind); ok {
		s.plan(kind, name)
	}
}

// plan gives an XR another plan, and keeps its status.
func (s *Script) plan(kind string, name types.NamespacedName) {
	p := Plan{Follow: s.Rand.IntN(3) == 0, Composes: max(0, s.Rand.IntN(4)-1)}
	for range 1 + s.Rand.IntN(3) {
		p.Requires = append(p.Requires, s.want())
	}
	if s.Rand.IntN(2) == 0 {
		// Nothing else wakes this one.
		p = Plan{Requires: []Want{{Kind: Pick(s, RareKinds), Namespace: Pick(s, Namespaces), Name: Pick(s, rareNames)}}}
	}
	text, err := json.Marshal(p)
	if err != nil {
		panic(fmt.Sprintf("a plan that is no JSON: %v", err))
	}
	obj := Thing(kind, name.Namespace, name.Name, map[string]any{"color": Pick(s, colors)}, "", "")
	obj.Object["spec"] = map[string]any{"plan": string(text)}
	if old := s.objects.Object(GVK(kind), name); old != nil && old.Object["status"] != nil {
		obj.Object["status"] = old.Object["status"]
	}
	s.put(obj)
}

func (s *Script) want() Want {
	kind, name := s.place()
	switch s.Rand.IntN(10) {
	case 0:
		return Want{Kind: kind}
	case 1:
		return Want{Kind: Pick(s, XRKinds), Labels: map[string]string{"color": Pick(s, colors)}}
	case 2, 3, 4:
		return Want{Kind: kind, Namespace: name.Namespace, Labels: map[string]string{"color": Pick(s, colors)}}
	}
	return Want{Kind: kind, Namespace: name.Namespace, Name: name.Name}
}
