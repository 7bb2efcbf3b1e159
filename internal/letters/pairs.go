// SPDX-License-Identifier: Apache-2.0

package letters

import (
	"errors"
	"math"

	"github.com/spillwaylog/spillway/msgpack"
)

// errKind says that a value is of another kind or size than it should be.
var errKind = errors.New("a value of another kind")

// eachPair calls f with the pairs of a map that b begins with. Keys that are no text are passed
// over.
func eachPair(b []byte, f func(name, value []byte) error) error {
	t, at, err := msgpack.ReadToken(b)
	if err != nil || t.Kind != msgpack.KindMap {
		return errKind
	}
	for range t.Len {
		name, kind, n, err := msgpack.ReadBytes(b[at:])
		if err != nil {
			kind = msgpack.KindBin
			if n, err = msgpack.Skip(b[at:]); err != nil {
				return err
			}
		}
		at += n
		if n, err = msgpack.Skip(b[at:]); err != nil {
			return err
		}
		if kind == msgpack.KindStr {
			if err := f(name, b[at:at+n]); err != nil {
				return err
			}
		}
		at += n
	}
	return nil
}

// eachElement calls f with the elements of an array that b begins with.
func eachElement(b []byte, f func(value []byte) error) error {
	t, at, err := msgpack.ReadToken(b)
	if err != nil || t.Kind != msgpack.KindArray {
		return errKind
	}
	for range t.Len {
		n, err := msgpack.Skip(b[at:])
		if err != nil {
			return err
		}
		if err := f(b[at : at+n]); err != nil {
			return err
		}
		at += n
	}
	return nil
}

func readBytes(b []byte) ([]byte, error) {
	p, _, _, err := msgpack.ReadBytes(b)
	if err != nil {
		return nil, errKind
	}
	return p, nil
}

func readInt(b []byte) (int64, error) {
	t, _, err := msgpack.ReadToken(b)
	if err != nil || t.Kind != msgpack.KindInt && t.Kind != msgpack.KindUint {
		return 0, errKind
	}
	n, ok := t.Int()
	if !ok {
		return math.MaxInt64, errKind
	}
	return n, nil
}

func readUint(b []byte) (uint64, error) {
	t, _, err := msgpack.ReadToken(b)
	if err != nil || t.Kind != msgpack.KindInt && t.Kind != msgpack.KindUint {
		return 0, errKind
	}
	n, ok := t.Uint()
	if !ok {
		return 0, errKind
	}
	return n, nil
}
