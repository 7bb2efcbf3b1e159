// SPDX-License-Identifier: Apache-2.0

package collector

import "github.com/spillwaylog/spillway/msgpack"

// The store has keys of its own in the option map of a record, behind what AppendTail wrote: the
// chunk's fingerprint, and the position of its input. forward.Chunk.Parse steps over them, so no
// peer is ever asked for one, and none is sent it.
const (
	fingerprintKey = "print"
	positionKey    = "position"
)

// appendFingerprint adds a fingerprint to the option map of a chunk, which is as AppendTail wrote
// it: one of less than 14 pairs, whose first byte is 0x80 and their number.
func appendFingerprint(tail, mark []byte) []byte {
	tail[0]++
	return msgpack.AppendBin(msgpack.AppendString(tail, fingerprintKey), mark)
}

// appendPosition adds a position in the same way.
func appendPosition(tail []byte, key string, position []byte) []byte {
	tail[0]++
	tail = msgpack.AppendString(tail, positionKey)
	tail = msgpack.AppendArrayHeader(tail, 2)
	tail = msgpack.AppendString(tail, key)
	return msgpack.AppendBin(tail, position)
}

// fingerprintIn returns the fingerprint in a record, which it aliases; nil if there is none.
func fingerprintIn(record []byte) []byte {
	mark, _, _, err := msgpack.ReadBytes(optionIn(record, fingerprintKey))
	if err != nil {
		return nil
	}
	return mark
}

// positionIn returns the position in a record, which it aliases.
func positionIn(record []byte) (key string, position []byte, ok bool) {
	value := optionIn(record, positionKey)
	n, ok := header(value, msgpack.KindArray, 2)
	if !ok {
		return "", nil, false
	}
	of, position, _, ok := pair(value[n:])
	return string(of), position, ok
}

// optionIn returns what a record has under a key of its option, and what stands behind that; nil if
// it has nothing there.
func optionIn(record []byte, key string) []byte {
	n, ok := header(record, msgpack.KindArray, 3)
	if !ok {
		return nil
	}
	_, _, k, ok := pair(record[n:]) // the tag and the entries
	if !ok {
		return nil
	}
	n += k
	t, k, err := msgpack.ReadToken(record[n:])
	if err != nil || t.Kind != msgpack.KindMap {
		return nil
	}
	n += k
	for range t.Len {
		name, _, k, err := msgpack.ReadBytes(record[n:])
		if err != nil {
			return nil
		}
		n += k
		if string(name) == key {
			return record[n:]
		}
		if k, err = msgpack.Skip(record[n:]); err != nil {
			return nil
		}
		n += k
	}
	return nil
}

// header reads an array's or map's header of a known length.
func header(b []byte, kind msgpack.Kind, length int) (n int, ok bool) {
	t, n, err := msgpack.ReadToken(b)
	return n, err == nil && t.Kind == kind && t.Len == length
}

// pair reads two values of bytes.
func pair(b []byte) (key, value []byte, n int, ok bool) {
	key, _, n, err := msgpack.ReadBytes(b)
	if err != nil {
		return nil, nil, 0, false
	}
	value, _, k, err := msgpack.ReadBytes(b[n:])
	return key, value, n + k, err == nil
}
