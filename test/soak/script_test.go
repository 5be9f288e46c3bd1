// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crosswatch-io/crosswatch/test/watchserver"
)

// The small world in which everything happens: so small that changes meet.
var (
	xrKinds = []string{"Alpha", "Beta"}
	// silentKind writes no status: a write of its own would run an XR once more, and
	// hide what the run before missed.
	silentKind = "Beta"
	thingKinds = []string{"Thing", "Widget", "Gadget", "Node"}
	// rareKinds are required so seldom that sweeps stop their watches.
	rareKinds    = []string{"Comet", "Eclipse", "Meteor", "Nova", "Quasar", "Rainbow", "Aurora", "Halo", "Corona", "Transit"}
	composedKind = "Composed"
	clusterKind  = "Node"
	rareNames    = []string{"first", "second"}
	namespaces   = []string{"north", "south"}
	colors       = []string{"red", "green", "blue"}
)

const (
	namesPerKind = 12
	xrsPerKind   = 40
)

// script changes the server's objects at random. One goroutine uses it.
type script struct {
	rand   *rand.Rand
	server *watchserver.Server
	// mix is what changes how often.
	mix []weighted
	// changes counts those of objects.
	changes int
	// withdrawn and forbidden are the kinds that nobody can read.
	withdrawn, forbidden map[string]bool
	// troubled are the kinds that fail for now.
	troubled map[string]bool
}

func newScript(seed uint64, server *watchserver.Server) *script {
	s := &script{
		rand:      rand.New(rand.NewPCG(seed, seed)), //nolint:gosec // to be repeated
		server:    server,
		mix:       ordinary,
		withdrawn: map[string]bool{}, forbidden: map[string]bool{}, troubled: map[string]bool{},
	}
	for _, kind := range allKinds() {
		s.serve(kind)
	}
	return s
}

func allKinds() []string {
	return slices.Concat([]string{composedKind}, xrKinds, thingKinds, rareKinds)
}

func (s *script) serve(kind string) {
	s.server.Serve(watchserver.Kind{GVK: gvkOf(kind), Resource: kind + "s", Namespaced: kind != clusterKind})
}

// weighted is something to do, more often the more it weighs.
type weighted struct {
	weight int
	do     func(*script)
}

// ordinary is what happens to objects all the time.
var ordinary = []weighted{
	{60, (*script).changeValue},
	{8, (*script).deleteThing},
	{10, (*script).relabel},
	{6, (*script).repoint},
	{5, (*script).addXR},
	{3, (*script).removeXR},
	{5, (*script).replan},
	{2, (*script).undo},
	{1, (*script).burst},
}

// faults are what happens to watches now and then.
var faults = []weighted{
	{30, func(s *script) { s.server.Cut(gvkOf(s.kind())) }},
	{20, func(s *script) {
		kind := gvkOf(s.kind())
		s.server.Compact(kind)
		s.server.Cut(kind)
	}},
	{5, (*script).withdraw},
	{5, (*script).forbid},
	{3, func(s *script) { s.trouble(http.StatusInternalServerError) }},
	{3, func(s *script) { s.trouble(http.StatusTooManyRequests) }},
	{3, func(s *script) {
		kind := s.kind()
		s.troubled[kind] = true
		s.server.Hang(gvkOf(kind), true)
		s.server.Cut(gvkOf(kind))
	}},
}

func (s *script) one(of []weighted) {
	total := 0
	for _, w := range of {
		total += w.weight
	}
	at := s.rand.IntN(total)
	for _, w := range of {
		if at -= w.weight; at < 0 {
			w.do(s)
			return
		}
	}
}

func pick[T any](s *script, of []T) T { return of[s.rand.IntN(len(of))] }

// kind picks one that XRs require or compose; those of XRs, seldom.
func (s *script) kind() string {
	if s.rand.IntN(10) == 0 {
		return pick(s, xrKinds)
	}
	return pick(s, slices.Concat([]string{composedKind}, thingKinds, rareKinds))
}

// place picks the identity of a thing.
func (s *script) place() (kind string, name types.NamespacedName) {
	if s.rand.IntN(25) == 0 {
		return pick(s, rareKinds), types.NamespacedName{Namespace: pick(s, namespaces), Name: pick(s, rareNames)}
	}
	kind = pick(s, thingKinds)
	name.Name = "n" + strconv.Itoa(s.rand.IntN(namesPerKind))
	if kind != clusterKind {
		name.Namespace = pick(s, namespaces)
	}
	return kind, name
}

// put stores an object. What is withdrawn can't be changed.
func (s *script) put(obj *unstructured.Unstructured) {
	_, changed, err := s.server.Put(obj)
	if changed {
		s.changes++
	}
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		panic(err)
	}
}

func (s *script) delete(kind string, name types.NamespacedName) {
	if s.server.Delete(gvkOf(kind), name) {
		s.changes++
	}
}

// edit changes a thing, which it creates if there is none.
func (s *script) edit(kind string, name types.NamespacedName, change func(labels, spec map[string]any)) {
	labels, spec := map[string]any{}, map[string]any{}
	if old := s.server.Object(gvkOf(kind), name); old != nil {
		if l, ok, _ := unstructured.NestedMap(old.Object, "metadata", "labels"); ok {
			labels = l
		}
		spec = maps.Clone(old.Object["spec"].(map[string]any))
	} else {
		labels["color"] = pick(s, colors)
	}
	change(labels, spec)
	obj := thing(kind, name.Namespace, name.Name, labels, "", "")
	obj.Object["spec"] = spec
	s.put(obj)
}

func (s *script) changeValue() {
	kind, name := s.place()
	s.edit(kind, name, func(_, spec map[string]any) { spec["value"] = s.value() })
}

func (s *script) value() string { return strconv.FormatUint(s.rand.Uint64(), 36) }

func (s *script) deleteThing() {
	kind, name := s.place()
	s.delete(kind, name)
}

func (s *script) relabel() {
	kind, name := s.place()
	s.edit(kind, name, func(labels, _ map[string]any) { labels["color"] = pick(s, colors) })
}

func (s *script) repoint() {
	kind, name := s.place()
	s.edit(kind, name, func(_, spec map[string]any) { spec["next"] = "n" + strconv.Itoa(s.rand.IntN(namesPerKind)) })
}

// burst changes one thing as fast as it can.
func (s *script) burst() {
	kind, name := s.place()
	for range 50 {
		s.edit(kind, name, func(_, spec map[string]any) { spec["value"] = s.value() })
	}
}

// touch changes once whatever is rare, and everything of one kind that isn't. An XR
// that does not hear of such a kind may have nothing else to wake it.
func (s *script) touch() {
	change := func(kind string, name types.NamespacedName) {
		s.edit(kind, name, func(_, spec map[string]any) { spec["value"] = s.value() })
	}
	kind := pick(s, thingKinds)
	for _, name := range s.server.Names(gvkOf(kind)) {
		change(kind, name)
	}
	for _, kind := range rareKinds {
		for _, namespace := range namespaces {
			for _, name := range rareNames {
				change(kind, types.NamespacedName{Namespace: namespace, Name: name})
			}
		}
	}
}

// undo changes or deletes, as others do, what an XR composes.
func (s *script) undo() {
	name, ok := s.any(composedKind)
	if !ok {
		return
	}
	if s.rand.IntN(2) == 0 {
		s.delete(composedKind, name)
		return
	}
	s.edit(composedKind, name, func(_, spec map[string]any) { spec["value"] = s.value() })
}

// any picks an object of the kind.
func (s *script) any(kind string) (types.NamespacedName, bool) {
	names := s.server.Names(gvkOf(kind))
	if len(names) == 0 {
		return types.NamespacedName{}, false
	}
	return pick(s, names), true
}

func (s *script) addXR() {
	kind := pick(s, xrKinds)
	name := types.NamespacedName{Namespace: pick(s, namespaces), Name: "x" + strconv.Itoa(s.rand.IntN(xrsPerKind/len(namespaces)))}
	if s.server.Object(gvkOf(kind), name) == nil {
		s.plan(kind, name)
	}
}

func (s *script) removeXR() {
	kind := pick(s, xrKinds)
	if name, ok := s.any(kind); ok {
		s.delete(kind, name)
	}
}

func (s *script) replan() {
	kind := pick(s, xrKinds)
	if name, ok := s.any(kind); ok {
		s.plan(kind, name)
	}
}

// plan gives an XR another plan, and keeps its status.
func (s *script) plan(kind string, name types.NamespacedName) {
	p := plan{Follow: s.rand.IntN(3) == 0, Composes: max(0, s.rand.IntN(4)-1)}
	for range 1 + s.rand.IntN(3) {
		p.Requires = append(p.Requires, s.want())
	}
	if s.rand.IntN(2) == 0 {
		// Nothing else wakes this one.
		p = plan{Requires: []want{{Kind: pick(s, rareKinds), Namespace: pick(s, namespaces), Name: pick(s, rareNames)}}}
	}
	text, err := json.Marshal(p)
	if err != nil {
		panic(fmt.Sprintf("a plan that is no JSON: %v", err))
	}
	obj := thing(kind, name.Namespace, name.Name, map[string]any{"color": pick(s, colors)}, "", "")
	obj.Object["spec"] = map[string]any{"plan": string(text)}
	if old := s.server.Object(gvkOf(kind), name); old != nil && old.Object["status"] != nil {
		obj.Object["status"] = old.Object["status"]
	}
	s.put(obj)
}

func (s *script) want() want {
	kind, name := s.place()
	switch s.rand.IntN(10) {
	case 0:
		return want{Kind: kind}
	case 1:
		return want{Kind: pick(s, xrKinds), Labels: map[string]string{"color": pick(s, colors)}}
	case 2, 3, 4:
		return want{Kind: kind, Namespace: name.Namespace, Labels: map[string]string{"color": pick(s, colors)}}
	}
	return want{Kind: kind, Namespace: name.Namespace, Name: name.Name}
}

// withdraw removes a kind or, if it is gone, brings it back.
func (s *script) withdraw() {
	kind := pick(s, append([]string{composedKind}, thingKinds...))
	if s.withdrawn[kind] {
		delete(s.withdrawn, kind)
		s.serve(kind)
		return
	}
	s.changes += len(s.server.Names(gvkOf(kind)))
	s.server.Withdraw(gvkOf(kind))
	delete(s.troubled, kind)
	delete(s.forbidden, kind)
	s.withdrawn[kind] = true
}

// forbid takes the right to read a kind away or, if it is missing, gives it back.
func (s *script) forbid() {
	kind := pick(s, append([]string{composedKind}, thingKinds...))
	if s.withdrawn[kind] {
		return
	}
	if s.forbidden[kind] {
		delete(s.forbidden, kind)
		s.server.Refuse(gvkOf(kind), 0)
		return
	}
	s.forbidden[kind] = true
	s.server.Refuse(gvkOf(kind), http.StatusForbidden)
	s.server.Cut(gvkOf(kind))
}

// trouble makes a kind fail until calm.
func (s *script) trouble(status int) {
	kind := s.kind()
	if s.forbidden[kind] || s.withdrawn[kind] {
		return
	}
	s.troubled[kind] = true
	s.server.Refuse(gvkOf(kind), status)
	s.server.Cut(gvkOf(kind))
}

// calm ends what makes kinds fail, but for what was withdrawn and forbidden.
func (s *script) calm() {
	for kind := range s.troubled {
		s.server.Hang(gvkOf(kind), false)
		if !s.forbidden[kind] {
			s.server.Refuse(gvkOf(kind), 0)
		}
	}
	clear(s.troubled)
}

// unreadable says that a kind can't be read, and XRs that require it are blind.
func (s *script) unreadable(kind string) bool { return s.withdrawn[kind] || s.forbidden[kind] }

var errUnreadable = errors.New("the kind can't be read")
