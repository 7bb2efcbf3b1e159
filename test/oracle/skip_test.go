// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"errors"
	"testing"

	"github.com/tinylib/msgp/msgp"
	vmihailenco "github.com/vmihailenco/msgpack/v5"
	"pgregory.net/rapid"

	"github.com/spillwaylog/spillway/msgpack"
)

// encode writes a value with one of the three implementations.
func encode(t *rapid.T, v any) []byte {
	switch rapid.SampledFrom([]string{"vmihailenco", "msgp", "own"}).Draw(t, "encoder") {
	case "vmihailenco":
		b, err := vmihailenco.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return b
	case "msgp":
		b, err := msgp.AppendIntf(nil, v)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	return appendValue(nil, v)
}

// scan is Skip by a scanner that gets the bytes in pieces.
func scan(t *rapid.T, b []byte) (int, error) {
	var s msgpack.Scanner
	s.Reset(msgpack.Limits{})
	at := 0
	for at < len(b) {
		piece := rapid.IntRange(1, min(40, len(b)-at)).Draw(t, "piece")
		n, done, err := s.Scan(b[at : at+piece])
		at += n
		if done || err != nil {
			return at, err
		}
	}
	return at, msgpack.ErrShort
}

// sentinel is the one of the package's errors that err is.
func sentinel(err error) error {
	for _, e := range []error{
		msgpack.ErrShort, msgpack.ErrInvalid, msgpack.ErrDepth, msgpack.ErrLength,
		msgpack.ErrCount,
	} {
		if errors.Is(err, e) {
			return e
		}
	}
	return err
}

// TestSkip holds Skip and Scanner against msgp.Skip on whole values with more bytes behind them.
func TestSkip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := encode(t, values(3).Draw(t, "value"))
		size := len(b)
		b = append(b, rapid.SliceOf(rapid.Byte()).Draw(t, "rest")...)
		n, err := msgpack.Skip(b)
		if err != nil || n != size {
			t.Fatalf("Skip: %d, %v; want %d", n, err, size)
		}
		if n, err := scan(t, b[:min(len(b), 2000)]); err != nil && size <= 2000 || n != min(size, 2000) {
			t.Fatalf("Scan: %d, %v; want %d", n, err, size)
		}
		if rest, err := msgp.Skip(b); err != nil || len(b)-len(rest) != size {
			t.Fatalf("msgp.Skip: %d, %v; want %d", len(b)-len(rest), err, size)
		}
	})
}

// TestSkipAnything holds them against each other on bytes that are most often no value.
func TestSkipAnything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var b []byte
		if rapid.Bool().Draw(t, "damaged") {
			b = encode(t, values(2).Draw(t, "value"))
			b = b[:min(len(b), 3000)]
			for range rapid.IntRange(0, 3).Draw(t, "bytes changed") {
				b[rapid.IntRange(0, len(b)-1).Draw(t, "at")] = rapid.Byte().Draw(t, "byte")
			}
		} else {
			b = rapid.SliceOfN(rapid.Byte(), 0, 100).Draw(t, "bytes")
		}
		n, err := msgpack.Skip(b)
		rest, theirs := msgp.Skip(b)
		if (err == nil) != (theirs == nil) {
			t.Fatalf("% x: Skip %d, %v; msgp.Skip %v", b, n, err, theirs)
		}
		if err == nil && n != len(b)-len(rest) {
			t.Fatalf("% x: Skip %d, msgp.Skip %d", b, n, len(b)-len(rest))
		}
		if m, scanned := scan(t, b); !errors.Is(scanned, sentinel(err)) || err == nil && m != n {
			t.Fatalf("% x: Skip %d, %v; Scan %d, %v", b, n, err, m, scanned)
		}
	})
}
