// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"strings"

	"github.com/spillwaylog/spillway/msgpack"
)

// Stamp is what is added to the records of one connection. What stands under its keys is
// always ours: a peer's own key of such a name, str or bin, is dropped, also where nothing is known
// to put there, so that nobody claims to be somebody else.
type Stamp struct {
	names []string
	pairs []byte // encoded
	count int    // of them
}

// MaxBytes is how much longer a record becomes at most: the header of its map may grow too.
func (s *Stamp) MaxBytes() int {
	if s == nil {
		return 0
	}
	return len(s.pairs) + 4
}

// Add adds a value under a key, if there is a key. Nothing is put there for an empty value.
func (s *Stamp) Add(key, value string) {
	if key == "" {
		return
	}
	s.names = append(s.names, key)
	if value != "" {
		s.pairs = msgpack.AppendString(msgpack.AppendString(s.pairs, key), strings.ToValidUTF8(value, "\ufffd"))
		s.count++
	}
}

// appendRecord appends the map that record begins with, with what the stamp adds. It ends at
// record[n].
func (s *Stamp) appendRecord(dst, record []byte) (out []byte, n int) {
	t, at, _ := msgpack.ReadToken(record)
	header := len(dst)
	dst = msgpack.AppendMapHeader(dst, t.Len+s.count)
	left, from := 0, at
	for range t.Len {
		start := at
		key, _, n, err := msgpack.ReadBytes(record[at:])
		if err != nil { // a key of another kind
			n, _ = msgpack.Skip(record[at:])
			key = nil
		}
		at += n
		n, _ = msgpack.Skip(record[at:])
		at += n
		if key != nil && s.has(key) {
			dst = append(dst, record[from:start]...)
			from = at
			left++
		}
	}
	dst = append(dst, record[from:at]...)
	if left > 0 {
		n := t.Len + s.count - left
		switch h := dst[header:]; h[0] {
		case codeMap32:
			h[1], h[2], h[3], h[4] = byte(n>>24), byte(n>>16), byte(n>>8), byte(n)
		case CodeMap16:
			h[1], h[2] = byte(n>>8), byte(n)
		default:
			h[0] = CodeMap0 | byte(n)
		}
	}
	return append(dst, s.pairs...), at
}

func (s *Stamp) has(key []byte) bool {
	for _, name := range s.names {
		if name == string(key) {
			return true
		}
	}
	return false
}
