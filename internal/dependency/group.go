// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package dependency

// A group is any number of numbers in four bytes: none, the only one, or which of
// groups' sets has them. The zero group is empty.
type group uint32

// inSet marks a group as the number of a set.
const inSet group = 1 << 31

func (g group) set() uint32 { return uint32(g &^ inSet) }

// groups keeps the sets of the groups that have several numbers, none of which is
// zero.
type groups[N ~uint32] struct {
	sets   pages[set[N]]
	spare  []uint32 // sets that are empty
	inSets int      // numbers in all sets
}

// add returns the group with the number in it, and whether that is new.
func (g *groups[N]) add(to group, n N) (group, bool) {
	switch {
	case to&inSet != 0:
		added := g.sets.at(to.set()).add(n)
		if added {
			g.inSets++
		}
		return to, added
	case to == 0:
		return group(n), true
	case N(to) == n:
		return to, false
	}
	which := g.newSet()
	s := g.sets.at(which)
	s.add(N(to))
	s.add(n)
	g.inSets += 2
	return group(which) | inSet, true
}

// remove returns the group without the number, and whether it was there.
func (g *groups[N]) remove(from group, n N) (group, bool) {
	if from&inSet == 0 {
		if from == 0 || N(from) != n {
			return from, false
		}
		return 0, true
	}
	s := g.sets.at(from.set())
	if !s.remove(n) {
		return from, false
	}
	g.inSets--
	last, alone := s.only()
	if !alone {
		return from, true
	}
	g.inSets--
	*s = set[N]{}
	g.spare = append(g.spare, from.set())
	return group(last), true
}

// each calls visit in order with the numbers that are not before start, until
// visit returns false.
func (g *groups[N]) each(of group, start N, visit func(N) bool) {
	switch {
	case of&inSet != 0:
		g.sets.at(of.set()).each(start, visit)
	case of != 0 && N(of) >= start:
		visit(N(of))
	}
}

func (g *groups[N]) len(of group) int {
	switch {
	case of&inSet != 0:
		return g.sets.at(of.set()).len()
	case of != 0:
		return 1
	}
	return 0
}

func (g *groups[N]) newSet() uint32 {
	last := len(g.spare) - 1
	if last < 0 {
		return g.sets.grow()
	}
	which := g.spare[last]
	g.spare = g.spare[:last]
	return which
}
