// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"math"

	"github.com/spillwaylog/spillway/msgpack"
)

// Option is the last element of a message, as far as we know its keys (docs/forward.md rules 7, 14,
// 16, 17, 24). What it holds aliases the message.
type Option struct {
	ID         []byte // nil: none
	IDBin      bool
	Compressed []byte // nil: none
	Size       int
	Signal     int // -1: something that is no number
	UniqueID   bool
}

// UniqueIDKey marks an id that is random and names its entries for ever. Its value is the version
// of that promise.
const (
	UniqueIDKey     = "spillway"
	uniqueIDVersion = 1
)

// signalUnknown is the signal of an option whose fluent_signal is no small number: surely not logs.
const signalUnknown = -1

// Parse reads a complete MessagePack value. One that is no map says nothing; of a repeated key the
// last one counts; unknown keys and values of unexpected types are passed over.
func (o *Option) Parse(b []byte) {
	*o = Option{}
	t, at, err := msgpack.ReadToken(b)
	if err != nil || t.Kind != msgpack.KindMap {
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

// Append appends the option as a map, each key only where it says something; compressed is how the
// entries of the message are compressed.
func (o *Option) Append(dst []byte, compressed string) []byte {
	n := 1
	for _, has := range [...]bool{o.ID != nil, o.Signal != 0, o.UniqueID, compressed != ""} {
		if has {
			n++
		}
	}
	dst = msgpack.AppendMapHeader(dst, n)
	if o.ID != nil {
		dst = msgpack.AppendString(dst, "chunk")
		dst = appendID(dst, o.ID, o.IDBin)
	}
	dst = msgpack.AppendString(dst, "size")
	dst = msgpack.AppendInt(dst, int64(o.Size))
	if compressed != "" {
		dst = msgpack.AppendString(dst, "compressed")
		dst = msgpack.AppendString(dst, compressed)
	}
	if o.Signal != 0 {
		dst = msgpack.AppendString(dst, "fluent_signal")
		dst = msgpack.AppendInt(dst, int64(o.Signal))
	}
	if o.UniqueID {
		dst = msgpack.AppendString(dst, UniqueIDKey)
		dst = msgpack.AppendInt(dst, uniqueIDVersion)
	}
	return dst
}

// set takes one pair.
func (o *Option) set(key, value []byte) {
	switch string(key) {
	case "chunk":
		p, kind, _, err := msgpack.ReadBytes(value)
		if err != nil {
			p = nil
		}
		o.ID, o.IDBin = p, kind == msgpack.KindBin
	case "compressed":
		o.Compressed = nil
		if p, _, _, err := msgpack.ReadBytes(value); err == nil {
			o.Compressed = p
		} else if value[0] != CodeNil {
			o.Compressed = value // of no kind that could name one: unknown
		}
	case "size":
		if n, ok := Number(value); ok && n >= 0 && n <= math.MaxInt32 {
			o.Size = int(n)
		}
	case "fluent_signal":
		n, ok := Number(value)
		switch {
		case ok && n >= 0 && n < 128:
			o.Signal = int(n)
		case value[0] == CodeNil:
			o.Signal = 0
		default:
			o.Signal = signalUnknown
		}
	case UniqueIDKey:
		n, ok := Number(value)
		o.UniqueID = ok && n >= uniqueIDVersion
	}
}

// Number reads an integer.
func Number(b []byte) (int64, bool) {
	t, _, err := msgpack.ReadToken(b)
	if err != nil || t.Kind != msgpack.KindInt && t.Kind != msgpack.KindUint {
		return 0, false
	}
	return t.Int()
}

// Compression is how entries are packed.
type Compression uint8

// The ways.
const (
	CompressionPlain Compression = iota
	CompressionGzip
	CompressionZstd
	UnknownCompression
)

// String returns what the option "compressed" says.
func (k Compression) String() string { return [...]string{"", "gzip", "zstd", "unknown"}[k] }

// Compression is how the entries are packed.
func (o *Option) Compression() Compression { return CompressionOf(string(o.Compressed)) }

// CompressionOf is what a name of the option means.
func CompressionOf(name string) Compression {
	switch name {
	case "", "text":
		return CompressionPlain
	case "gzip":
		return CompressionGzip
	case "zstd":
		return CompressionZstd
	}
	return UnknownCompression
}

// AppendHead appends what stands before n bytes of packed entries: the array's header, the tag, the
// header of a bin.
func AppendHead(dst []byte, tag string, n int) []byte {
	dst = msgpack.AppendArrayHeader(dst, 3)
	dst = msgpack.AppendString(dst, tag)
	return msgpack.AppendBinHeader(dst, n)
}

// appendID appends an id as it came: as str or as bin.
func appendID(dst, id []byte, bin bool) []byte {
	if bin {
		return msgpack.AppendBin(dst, id)
	}
	dst = msgpack.AppendStringHeader(dst, len(id))
	return append(dst, id...)
}
