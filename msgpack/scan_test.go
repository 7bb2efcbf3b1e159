// SPDX-License-Identifier: Apache-2.0

package msgpack

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"unsafe"
)

// scanAll gives b to the scanner in pieces, each as long as next says, and returns how far the
// value reached.
func scanAll(s *Scanner, b []byte, next func() int) (n int, done bool, err error) {
	for n < len(b) {
		piece := b[n:min(n+next(), len(b))]
		m, done, err := s.Scan(piece)
		n += m
		if done || err != nil {
			return n, done, err
		}
		if m != len(piece) {
			return n, false, fmt.Errorf("stopped after %d of %d bytes without a reason", m, len(piece))
		}
	}
	return n, false, nil
}

func sizes(n ...int) func() int {
	i := -1
	return func() int {
		i = (i + 1) % len(n)
		return n[i]
	}
}

func TestScan(t *testing.T) {
	var s Scanner // one for all: what is done leaves nothing behind
	for _, v := range vectors {
		b := v.bytes(t)
		more := append(bytes.Clone(b), 0x93, 0xc1)
		n, done, err := s.Scan(more)
		if n != len(b) || !done || err != nil || s.Partial() {
			t.Errorf("%s: %d, %v, %v, want %d", v.name, n, done, err, len(b))
			s.Reset(Limits{})
		}
		if n, err := Skip(more); n != len(b) || err != nil {
			t.Errorf("%s: Skip: %d, %v, want %d", v.name, n, err, len(b))
		}
		for _, size := range []int{1, 2, 3, 5, 7, 64} {
			if n, done, err := scanAll(&s, more, sizes(size)); n != len(b) || !done || err != nil {
				t.Errorf("%s in pieces of %d: %d, %v, %v, want %d", v.name, size, n, done, err, len(b))
				s.Reset(Limits{})
			}
		}
		for at := 1; at < min(len(b), 600); at++ {
			if n, done, err := scanAll(&s, more, sizes(at, len(more))); n != len(b) || !done || err != nil {
				t.Errorf("%s cut at %d: %d, %v, %v, want %d", v.name, at, n, done, err, len(b))
				s.Reset(Limits{})
			}
			if n, err := Skip(b[:at]); n != at || !errors.Is(err, ErrShort) {
				t.Errorf("%s: Skip of %d bytes: %d, %v", v.name, at, n, err)
			}
			n, done, err := s.Scan(b[:at])
			if n != at || done || err != nil || !s.Partial() {
				t.Errorf("%s: %d bytes: %d, %v, %v", v.name, at, n, done, err)
			}
			s.Reset(Limits{})
		}
	}
}

func TestScanBad(t *testing.T) {
	for _, v := range badVectors {
		b := v.bytes(t)
		var text string
		for _, size := range []int{len(b), 1, 2, 3, 5, 64} {
			var s Scanner
			n, done, err := scanAll(&s, b, sizes(size))
			if n != v.n || done || !errors.Is(err, v.err) {
				t.Errorf("%s in pieces of %d: %d, %v, %v, want %d, %v", v.name, size, n, done, err, v.n, v.err)
				continue
			}
			if text == "" {
				text = err.Error()
			}
			if err.Error() != text {
				t.Errorf("%s in pieces of %d: %q, want %q", v.name, size, err, text)
			}
			if n, done, again := s.Scan([]byte{0xc0}); n != 0 || done || !errors.Is(again, v.err) ||
				again.Error() != text {
				t.Errorf("%s: after the error: %d, %v, %v", v.name, n, done, again)
			}
			s.Reset(Limits{})
			if n, done, err := s.Scan([]byte{0xc0}); n != 1 || !done || err != nil {
				t.Errorf("%s: after Reset: %d, %v, %v", v.name, n, done, err)
			}
		}
		if n, err := Skip(b); n != v.n || !errors.Is(err, v.err) {
			t.Errorf("%s: Skip: %d, %v, want %d, %v", v.name, n, err, v.n, v.err)
		}
	}
}

func TestScanNothing(t *testing.T) {
	var s Scanner
	if n, done, err := s.Scan(nil); n != 0 || done || err != nil || s.Partial() {
		t.Errorf("%d, %v, %v", n, done, err)
	}
	if n, err := Skip(nil); n != 0 || !errors.Is(err, ErrShort) {
		t.Errorf("Skip: %d, %v", n, err)
	}
	s.Scan([]byte{0x91})
	if n, done, err := s.Scan(nil); n != 0 || done || err != nil || !s.Partial() {
		t.Errorf("in a value: %d, %v, %v", n, done, err)
	}
}

func TestLimits(t *testing.T) {
	array := func(n int) []byte { return writeArray(n)(nil) }
	pairs := func(n int) []byte { return writeMap(n)(nil) }
	str := func(n int) []byte { return AppendString(nil, strings.Repeat("a", n)) }
	ext := func(n int) []byte { return AppendExt(nil, 1, make([]byte, n)) }
	nest := func(n int) []byte { return append(bytes.Repeat([]byte{0x91}, n-1), 0x90) }
	for _, tt := range []struct {
		name   string
		limits Limits
		b      []byte
		err    error
	}{
		{"depth", Limits{Depth: 3}, nest(3), nil},
		{"depth", Limits{Depth: 3}, nest(4), ErrDepth},
		{"depth", Limits{Depth: 1}, nest(1), nil},
		{"depth", Limits{Depth: 1}, nest(2), ErrDepth},
		{"depth", Limits{Depth: 8}, nest(8), nil},
		{"depth", Limits{Depth: 8}, nest(9), ErrDepth},
		{"depth", Limits{Depth: 9}, nest(9), nil},
		{"depth", Limits{Depth: 9}, nest(10), ErrDepth},
		{"depth", Limits{Depth: 10_000}, nest(10_000), nil},
		{"depth", Limits{Depth: 10_000}, nest(10_001), ErrDepth},
		{"depth", Limits{Depth: math.MaxInt}, nest(65_535), nil},
		{"depth", Limits{Depth: math.MaxInt}, nest(65_536), ErrDepth},
		{"depth", Limits{Depth: -1}, nest(DefaultDepth), nil},
		{"depth", Limits{Depth: -1}, nest(DefaultDepth + 1), ErrDepth},
		{"depth", Limits{Depth: 1}, []byte{0x92, 1, 0x80}, ErrDepth},
		{"count", Limits{Count: 1}, array(1), nil},
		{"count", Limits{Count: 1}, array(2), ErrCount},
		{"count", Limits{Count: 14}, pairs(14), nil},
		{"count", Limits{Count: 14}, pairs(15), ErrCount},
		{"count", Limits{Count: 15}, pairs(15), nil},
		{"count", Limits{Count: 15}, pairs(16), ErrCount},
		{"count", Limits{Count: 100}, array(100), nil},
		{"count", Limits{Count: 100}, array(101), ErrCount},
		{"count", Limits{Count: math.MaxInt64}, []byte{0xdd, 0x80, 0, 0, 0}, ErrCount},
		{"length", Limits{Length: 1}, str(1), nil},
		{"length", Limits{Length: 1}, str(2), ErrLength},
		{"length", Limits{Length: 31}, str(31), nil},
		{"length", Limits{Length: 31}, str(32), ErrLength},
		{"length", Limits{Length: 254}, str(254), nil},
		{"length", Limits{Length: 254}, str(255), ErrLength},
		{"length", Limits{Length: 255}, str(255), nil},
		{"length", Limits{Length: 255}, str(256), ErrLength},
		{"length", Limits{Length: 7}, ext(7), nil},
		{"length", Limits{Length: 7}, ext(8), ErrLength},
		{"length", Limits{Length: 8}, ext(8), nil},
		{"length", Limits{Length: 70_000}, AppendBin(nil, make([]byte, 70_000)), nil},
		{"length", Limits{Length: 70_000}, AppendBin(nil, make([]byte, 70_001)), ErrLength},
		{"length", Limits{Length: 1}, []byte{0xcf, 1, 2, 3, 4, 5, 6, 7, 8}, nil},
		{
			"all",
			Limits{Depth: 2, Length: 3, Count: 2},
			[]byte{0x92, 0x82, 0xa3, 'a', 'b', 'c', 1, 0xa1, 'd', 2, 0xc3},
			nil,
		},
	} {
		n, err := tt.limits.Skip(tt.b)
		if !errors.Is(err, tt.err) || err == nil && n != len(tt.b) {
			t.Errorf("%s: %+v: %d of %d, %v, want %v", tt.name, tt.limits, n, len(tt.b), err, tt.err)
		}
		var s Scanner
		s.Reset(tt.limits)
		if m, done, again := scanAll(&s, tt.b, sizes(1)); m != n || done != (err == nil) ||
			fmt.Sprint(again) != fmt.Sprint(err) {
			t.Errorf("%s: %+v: byte by byte: %d, %v, %v, want %d, %v", tt.name, tt.limits, m, done, again, n, err)
		}
	}
}

// The largest str that there can be, 4 GiB, goes by in pieces, on 32 bits too.
func TestScanHuge(t *testing.T) {
	var s Scanner
	for _, typ := range []int{0, 1} { // str32, and ext32, which has a type
		s.Reset(Limits{Length: math.MaxInt64})
		header := []byte{0x92, 0xdb, 0xff, 0xff, 0xff, 0xff}
		if typ == 1 {
			header[1] = 0xc9
		}
		if n, done, err := s.Scan(header); n != 6 || done || err != nil {
			t.Fatal(n, done, err)
		}
		piece := make([]byte, 1<<20)
		total := uint64(math.MaxUint32 + uint64(typ))
		for total > 0 {
			p := piece[:min(total, uint64(len(piece)))]
			if n, done, err := s.Scan(p); n != len(p) || done || err != nil {
				t.Fatal(n, done, err)
			}
			total -= uint64(len(p))
		}
		if n, done, err := s.Scan([]byte{0xc0, 0xc0}); n != 1 || !done || err != nil {
			t.Fatal(n, done, err)
		}
	}
}

func TestScanAllocations(t *testing.T) {
	events := smallEvents(100)
	deep := append(bytes.Repeat([]byte{0x91}, DefaultDepth-1), 0x90)
	var s Scanner
	s.Scan(deep) // what it then holds, it keeps
	for _, tt := range []struct {
		name string
		b    []byte
		f    func(b []byte)
	}{
		{"Scan", events, func(b []byte) {
			for len(b) > 0 {
				n, _, _ := s.Scan(b[:min(len(b), 77)])
				b = b[n:]
			}
		}},
		{"Scan deep", deep, func(b []byte) { s.Scan(b) }},
		{"Skip", events, func(b []byte) { Skip(b) }},
		{"Skip, 8 deep", deep[DefaultDepth-8:], func(b []byte) { Skip(b) }},
		{"Skip of a claim", []byte{0x92, 0xa1, 't', 0xdb, 0x7f, 0xff, 0xff, 0xff}, func(b []byte) { Skip(b) }},
		{"ReadBytes", []byte{0xa1, 't'}, func(b []byte) { ReadBytes(b) }},
	} {
		if got := testing.AllocsPerRun(100, func() { tt.f(tt.b) }); got > 0 {
			t.Errorf("%s: %v allocations", tt.name, got)
		}
	}
}

// A server holds one for each of many thousand connections.
func TestScannerSize(t *testing.T) {
	if size := unsafe.Sizeof(Scanner{}); size > 112 {
		t.Errorf("a Scanner takes %d bytes", size)
	}
}

// reference finds the end of a value by the specification, without any of the scanner's means.
func reference(b []byte, l Limits, depth int) (n int, err error) {
	maxDepth, length, count := l.resolved()
	if len(b) == 0 {
		return 0, ErrShort
	}
	c := b[0]
	number := func(size int) (uint64, bool) {
		if len(b) < 1+size {
			return 0, false
		}
		var v uint64
		for _, x := range b[1 : 1+size] {
			v = v<<8 | uint64(x)
		}
		return v, true
	}
	payload := func(header int, size uint64, typ int) (int, error) {
		if size > uint64(length) {
			return header, ErrLength
		}
		if uint64(len(b)-header) < size+uint64(typ) {
			return len(b), ErrShort
		}
		return header + int(size) + typ, nil
	}
	container := func(header int, size uint64, each uint64) (int, error) {
		if size > uint64(count) {
			return header, ErrCount
		}
		if depth >= int(maxDepth) {
			return header, ErrDepth
		}
		n := header
		for range size * each {
			m, err := reference(b[n:], l, depth+1)
			n += m
			if err != nil {
				return n, err
			}
		}
		return n, nil
	}
	switch {
	case c < 0x80, c >= 0xe0, c == 0xc0, c == 0xc2, c == 0xc3:
		return 1, nil
	case c < 0x90:
		return container(1, uint64(c-0x80), 2)
	case c < 0xa0:
		return container(1, uint64(c-0x90), 1)
	case c < 0xc0:
		return payload(1, uint64(c-0xa0), 0)
	case c == 0xc1:
		return 1, ErrInvalid
	}
	size := map[byte]int{
		0xc4: 1, 0xc5: 2, 0xc6: 4, 0xc7: 1, 0xc8: 2, 0xc9: 4, 0xca: 4, 0xcb: 8, 0xcc: 1, 0xcd: 2, 0xce: 4, 0xcf: 8,
		0xd0: 1, 0xd1: 2, 0xd2: 4, 0xd3: 8, 0xd9: 1, 0xda: 2, 0xdb: 4, 0xdc: 2, 0xdd: 4, 0xde: 2, 0xdf: 4,
	}[c]
	v, ok := number(size)
	if !ok {
		return len(b), ErrShort
	}
	switch {
	case c <= 0xc6, c >= 0xd9 && c <= 0xdb:
		return payload(1+size, v, 0)
	case c <= 0xc9:
		return payload(1+size, v, 1)
	case c <= 0xd3:
		return 1 + size, nil
	case c <= 0xd8:
		return payload(1, 1<<(c-0xd4), 1)
	case c <= 0xdd:
		return container(1+size, v, 1)
	default:
		return container(1+size, v, 2)
	}
}

// FuzzScannerSplit: the cuts between pieces change neither what is found nor what is wrong, and
// both are as the specification says.
func FuzzScannerSplit(f *testing.F) {
	for _, v := range vectors {
		if b := v.bytes(f); len(b) < 1000 {
			f.Add(b, []byte{1, 2, 3}, uint16(0), uint16(0), uint16(0))
		}
	}
	for _, v := range badVectors {
		if b := v.bytes(f); len(b) < 1000 {
			f.Add(b, []byte{7}, uint16(4), uint16(20), uint16(3))
		}
	}
	f.Add(smallEvents(3), []byte{100, 0, 1}, uint16(9), uint16(300), uint16(15))
	f.Fuzz(func(t *testing.T, b, cuts []byte, depth, length, count uint16) {
		l := Limits{Depth: int(depth), Length: int64(length), Count: int64(count)}
		var whole, split Scanner
		whole.Reset(l)
		split.Reset(l)
		pieces := make([]int, len(cuts)+1)
		pieces[len(cuts)] = 1
		for i, c := range cuts {
			pieces[i] = int(c) + 1
		}
		next := sizes(pieces...)
		for len(b) > 0 {
			n, done, err := whole.Scan(b)
			m, sdone, serr := scanAll(&split, b, next)
			if m != n || sdone != done || fmt.Sprint(serr) != fmt.Sprint(err) || whole.Partial() != split.Partial() {
				t.Fatalf("whole %d, %v, %v; split %d, %v, %v", n, done, err, m, sdone, serr)
			}
			r, want := reference(b, l, 0)
			if r != n || done != (want == nil) || !errors.Is(want, ErrShort) && !errors.Is(err, want) {
				t.Fatalf("%d, %v, %v; reference %d, %v", n, done, err, r, want)
			}
			if k, err := l.Skip(b); k != n || !errors.Is(err, want) {
				t.Fatalf("Skip %d, %v; reference %d, %v", k, err, r, want)
			}
			if !done {
				break
			}
			b = b[n:]
		}
	})
}
