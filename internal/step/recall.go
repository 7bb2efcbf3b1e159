// SPDX-License-Identifier: Apache-2.0

package step

import (
	"cmp"
	"encoding/binary"
	"errors"
	"slices"
)

// How this file is organised. What the steps of an output know goes with its cursor: a record that
// is passed counts in the state that is committed with the cursor behind it, and one that is on its
// way does not.
//
//	Recall(state, at) ─► Sift … Learnt ─► Sift … Learnt ─► …      records are read
//	                            └── Settle ──► AppendState        the cursor passes them
//
// The state, with numbers as varints but where it says bytes:
//
//	state   [version 1] [steps] then for each  [id 16 bytes] [born] [keys] and for each of these
//	key     [16 bytes] [used] [left out] [span] [span]
//	span    [passed] and, unless that is 0, [from 8 bytes]

const stateVersion = 1

// Remembers says whether what comes out depends on events before.
func (s *Sifter) Remembers() bool { return s != nil && len(s.memories) > 0 }

// Learnt says that the record ends which was sifted last. Settle is told the number; news is how
// many bytes of memory what was learnt of the record takes until then.
func (s *Sifter) Learnt() (record uint64, news int64) {
	s.records++
	for _, m := range s.memories {
		news += m.learn(s.records)
	}
	return s.records, news
}

// Settle says that a record is passed, and all before it.
func (s *Sifter) Settle(record uint64) {
	for _, m := range s.memories {
		m.settle(record)
	}
}

// AppendState appends what is known as of the record that is settled last.
func (s *Sifter) AppendState(dst []byte) []byte {
	dst = append(dst, stateVersion)
	dst = binary.AppendUvarint(dst, uint64(len(s.memories)))
	for _, m := range s.memories {
		dst = append(dst, m.id[:]...)
		dst = binary.AppendUvarint(dst, m.born)
		dst = binary.AppendUvarint(dst, uint64(len(m.kept)))
		for i := range m.kept {
			k := &m.kept[i]
			dst = append(dst, k.key[:]...)
			dst = binary.AppendUvarint(dst, k.used)
			dst = binary.AppendUvarint(dst, k.leftOut)
			for _, t := range k.spans {
				if dst = binary.AppendUvarint(dst, uint64(t.passed)); t.passed > 0 {
					dst = binary.LittleEndian.AppendUint64(dst, uint64(t.from))
				}
			}
		}
	}
	return dst
}

// ErrState says that bytes are no state of steps.
var ErrState = errors.New("what steps had to know of the events before is not readable: they begin anew")

// Recall has steps know what a state says, and nothing else: where it says nothing of a step, that
// one begins anew at a position. So they all do after an error, which is ErrState.
func (s *Sifter) Recall(state []byte, at uint64) error {
	if !s.Remembers() {
		return nil
	}
	s.records = 0
	begin := func() {
		for _, m := range s.memories {
			m.begin(at)
		}
	}
	begin()
	var err error
	if len(state) > 0 && !s.recall(state) {
		begin()
		err = ErrState
	}
	s.remark()
	return err
}

// recall reads a state.
func (s *Sifter) recall(state []byte) bool {
	r := &recaller{rest: state, ok: true}
	version := r.bytes(1)
	if !r.ok || version[0] != stateVersion {
		return false
	}
	for range r.number() {
		id, born, keys := r.bytes(idLen), r.number(), r.number()
		i := slices.IndexFunc(s.memories, func(m *memory) bool { return string(m.id[:]) == string(id) })
		if !r.ok {
			return false
		}
		if i < 0 { // of a step that is there no more
			for range keys {
				if r.known(&known{}); !r.ok {
					return false
				}
			}
			continue
		}
		if m := s.memories[i]; len(m.known) > 0 || !m.recall(r, born, keys) {
			return false
		}
	}
	return r.ok && len(r.rest) == 0
}

// recall reads what a state says of one step.
func (m *memory) recall(r *recaller, born, keys uint64) bool {
	if keys > uint64(m.maxKeys) {
		return false
	}
	var all []known
	for range keys {
		var k known
		if r.known(&k); !r.ok || k.spans[0].passed > m.limit || k.spans[1].passed > m.limit {
			return false
		}
		all = append(all, k)
	}
	slices.SortStableFunc(all, func(a, b known) int { return cmp.Compare(a.used, b.used) })
	m.born = born
	for i := range all {
		if m.find(&all[i].key) != none {
			return false
		}
		m.add(all[i])
		m.calls = all[i].used
	}
	m.kept = append(m.kept, all...)
	return true
}

// A recaller reads a state from its front.
type recaller struct {
	rest []byte
	ok   bool
}

func (r *recaller) bytes(n int) (b []byte) {
	if n > len(r.rest) {
		r.rest, r.ok = nil, false
		return nil
	}
	b, r.rest = r.rest[:n], r.rest[n:]
	return b
}

// number reads one that is 0 where there is none.
func (r *recaller) number() uint64 {
	x, n := binary.Uvarint(r.rest)
	if n <= 0 || x > 1<<62 {
		r.rest, r.ok = nil, false
		return 0
	}
	r.rest = r.rest[n:]
	return x
}

func (r *recaller) known(k *known) {
	copy(k.key[:], r.bytes(keyLen))
	k.used, k.leftOut = r.number(), r.number()
	for i := range k.spans {
		passed := r.number()
		if k.spans[i].passed = uint32(passed); uint64(k.spans[i].passed) != passed {
			r.ok = false
		}
		if passed > 0 {
			if b := r.bytes(8); r.ok {
				k.spans[i].from = int64(binary.LittleEndian.Uint64(b))
			}
		}
	}
}
