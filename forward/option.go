// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"math"

	"github.com/spillwaylog/spillway/msgpack"
)

// option is the last element of a message, as far as we know its keys (docs/forward.md rules 7, 14,
// 16, 17, 24). What it holds aliases the message.
type option struct {
	id         []byte // nil: none
	idBin      bool
	compressed []byte // nil: none
	stamp      []byte // Chunk.Print: Parse alone looks at it, a peer on the wire could claim any
	size       int
	signal     int // -1: something that is no number
	own        bool
}

// signalUnknown is the signal of an option whose fluent_signal is no small number: surely not logs.
const signalUnknown = -1

// parse reads a complete MessagePack value. One that is no map says nothing; of a repeated key the
// last one counts; unknown keys and values of unexpected types are passed over.
func (o *option) parse(b []byte) {
	*o = option{}
	t, at, err := msgpack.ReadToken(b)
	if err != nil || t.Kind != msgpack.Map {
		return
	}
	for range t.Len {
		key, _, n, err := msgpack.ReadBytes(b[at:])
		if err != nil { // a key of another kind
			if n, err = msgpack.Skip(b[at:]); err != nil {
				return
			}
			key = nil
		}
		at += n
		n, err = msgpack.Skip(b[at:])
		if err != nil {
			return
		}
		o.set(key, b[at:at+n])
		at += n
	}
}

// set takes one pair.
func (o *option) set(key, value []byte) {
	switch string(key) {
	case "chunk":
		p, kind, _, err := msgpack.ReadBytes(value)
		if err != nil {
			p = nil
		}
		o.id, o.idBin = p, kind == msgpack.Bin
	case "compressed":
		o.compressed = nil
		if p, _, _, err := msgpack.ReadBytes(value); err == nil {
			o.compressed = p
		} else if value[0] != codeNil {
			o.compressed = value // of no kind that could name one: unknown
		}
	case "size":
		if n, ok := number(value); ok && n >= 0 && n <= math.MaxInt32 {
			o.size = int(n)
		}
	case "fluent_signal":
		n, ok := number(value)
		switch {
		case ok && n >= 0 && n < 128:
			o.signal = int(n)
		case value[0] == codeNil:
			o.signal = 0
		default:
			o.signal = signalUnknown
		}
	case OwnKey:
		n, ok := number(value)
		o.own = ok && n >= ownVersion
	case printKey:
		o.stamp, _, _, _ = msgpack.ReadBytes(value)
	}
}

// number reads an integer.
func number(b []byte) (int64, bool) {
	t, _, err := msgpack.ReadToken(b)
	if err != nil || t.Kind != msgpack.Int && t.Kind != msgpack.Uint {
		return 0, false
	}
	return t.Int()
}

// compression is how entries are packed.
type compression uint8

const (
	plain compression = iota
	gzipped
	zstded
	unknownCompression
)

// String returns what the option "compressed" says.
func (k compression) String() string { return [...]string{"", "gzip", "zstd", "unknown"}[k] }

func (o *option) compression() compression { return compressionOf(string(o.compressed)) }

func compressionOf(name string) compression {
	switch name {
	case "", "text":
		return plain
	case "gzip":
		return gzipped
	case "zstd":
		return zstded
	}
	return unknownCompression
}
