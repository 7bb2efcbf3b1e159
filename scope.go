// SPDX-License-Identifier: Apache-2.0

package spillway

import (
	"slices"

	"github.com/spillwaylog/spillway/internal/record"
	"github.com/spillwaylog/spillway/msgpack"
)

// A scope is what default fields, With and WithGroup have put before the attributes of a call.
type scope struct {
	prefix   []byte      // the default fields and those of With, encoded, with the groups that are open
	defaults int         // bytes of prefix that are default fields
	pairs    int         // of the record itself in prefix
	opened   []openGroup // the groups in prefix that are open, from outside in
	pending  []string    // the names of groups that are open and have no attribute yet, from outside in
	groups   []string    // the names of all open groups
	lastWins bool        // Options.LastWins
}

// An openGroup is an open group that has attributes.
type openGroup struct {
	at    int // where its header is in prefix
	pairs int // how many it has so far
}

// maxGroups is how many groups may be open at once: they count against the depth of a record that
// a receiver reads, beside the 100 levels of a value.
const maxGroups = 20

// within is sc in one more group.
func (sc *scope) within(name string) scope {
	m := *sc
	m.pending = append(slices.Clip(sc.pending), name)
	m.groups = append(slices.Clip(sc.groups), name)
	return m
}

// with is sc with n more attributes, encoded in b.
func (sc *scope) with(b []byte, n int) scope {
	m := *sc
	m.prefix = slices.Clone(sc.prefix)
	m.opened = slices.Clone(sc.opened)
	m.pending = nil
	for _, name := range sc.pending {
		m.add(1)
		m.prefix = msgpack.AppendString(m.prefix, name)
		var g openGroup
		m.prefix, g.at = record.BeginMap(m.prefix, wide)
		m.opened = append(m.opened, g)
	}
	m.add(n)
	m.prefix = append(m.prefix, b...)
	for i, g := range slices.Backward(m.opened) { // from inside out: a header that grows moves what is behind it
		before := len(m.prefix)
		m.prefix = record.EndMap(m.prefix, g.at, g.pairs)
		for inner := i + 1; inner < len(m.opened); inner++ {
			m.opened[inner].at += len(m.prefix) - before
		}
	}
	m.giveWay()
	m.prefix = slices.Clip(m.prefix)
	return m
}

// giveWay takes default fields out of the prefix that have the name of a later one.
func (sc *scope) giveWay() {
	var dropped int
	before := len(sc.prefix)
	sc.prefix, dropped = record.DropShadowed(sc.prefix, 0, sc.defaults)
	if dropped == 0 {
		return
	}
	gone := before - len(sc.prefix)
	sc.defaults -= gone
	sc.pairs -= dropped
	for i := range sc.opened {
		sc.opened[i].at -= gone
	}
}

// add counts pairs that are about to be appended to the prefix.
func (sc *scope) add(n int) {
	if k := len(sc.opened); k > 0 {
		sc.opened[k-1].pairs += n
	} else {
		sc.pairs += n
	}
}

// A span is where the parts of an event stand whose attributes are being written. With a fifth
// field it would be handed on in memory, which costs ten nanoseconds.
type span struct {
	base int // where the prefix begins
	tail int // where it ends, and the groups begin that had no attributes yet
	last int // where the header of the innermost of these is

	shadowed bool // a default field may have the name of another field
}

// open appends the prefix and the groups that stand open.
func (sc *scope) open(b []byte) ([]byte, span) {
	if len(sc.prefix)+len(sc.pending) == 0 {
		return b, span{base: len(b), tail: len(b)}
	}
	return sc.openPrefix(b)
}

func (sc *scope) openPrefix(b []byte) ([]byte, span) {
	s := span{base: len(b)}
	b = append(b, sc.prefix...)
	s.tail = len(b)
	for _, name := range sc.pending {
		b = msgpack.AppendString(b, name)
		b, s.last = record.BeginMap(b, wide)
		b = record.EndMap(b, s.last, 1)
	}
	return b, s
}

// finish writes the counts. at is where the record's header is, n pairs stand before the prefix,
// and k behind it. Groups that have nothing in them go again.
func (sc *scope) finish(s span, b []byte, at, n, k int) []byte {
	if len(sc.groups) > 0 {
		if len(sc.pending) > 0 {
			if k == 0 {
				b = b[:s.tail]
			} else {
				b = record.EndMap(b, s.last, k)
				k = 1
			}
		}
		if len(sc.opened) > 0 {
			g := sc.opened[len(sc.opened)-1]
			b = record.EndMap(b, s.base+g.at, g.pairs+k)
			k = 0 // not the record's own
		}
	}
	n += sc.pairs + k
	if s.shadowed || sc.lastWins {
		first := at + wideHeader
		rest, dropped := b[first:], 0
		if s.shadowed {
			rest, dropped = record.DropShadowed(rest, s.base-first, s.base-first+sc.defaults)
			n -= dropped
		}
		if sc.lastWins {
			rest, dropped = record.LastWins(rest)
			n -= dropped
		}
		b = b[:first+len(rest)]
	}
	return record.EndMap(b, at, n)
}
