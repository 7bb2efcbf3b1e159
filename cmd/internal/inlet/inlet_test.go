// SPDX-License-Identifier: Apache-2.0

package inlet

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// plain is an inlet in plain memory that holds nothing.
func plain(t testing.TB) *Inlet {
	t.Helper()
	in := &Inlet{mem: fresh()}
	copy(in.mem, magic)
	if err := in.begin(); err != nil {
		t.Fatal(err)
	}
	return in
}

// again is what the next process finds.
func again(t testing.TB, in *Inlet) *Inlet {
	t.Helper()
	next := &Inlet{mem: slices.Clone(in.mem)}
	if err := next.begin(); err != nil {
		t.Fatal(err)
	}
	return next
}

// all takes all lines that there are, text in brackets.
func all(in *Inlet) (lines []string) {
	for line, text, ok := in.Next(); ok; line, text, ok = in.Next() {
		s := string(line)
		if text {
			s = "[" + s + "]"
		}
		lines = append(lines, s)
		in.Took(1)
	}
	return lines
}

// dies is a reader whose process is killed once it has read: the panic is the kill.
type dies struct{ r io.Reader }

func (d dies) Read(b []byte) (int, error) {
	_, _ = d.r.Read(b)
	panic("killed")
}

func killed(f func()) {
	defer func() { _ = recover() }()
	f()
}

func TestKillBehindRead(t *testing.T) {
	in := plain(t)
	pipe := Pipe{1, 2}
	in.From(pipe)
	killed(func() { _ = in.Read(dies{strings.NewReader("one\ntwo\x00\nthr")}) })
	in = again(t, in)
	in.From(pipe)
	if got := all(in); !slices.Equal(got, []string{"one", "two\x00"}) {
		t.Errorf("%q", got)
	}
	in = again(t, in)
	in.From(pipe)
	_ = in.Read(strings.NewReader("ee\nfour"))
	if got := all(in); !slices.Equal(got, []string{"three"}) {
		t.Errorf("%q", got)
	}
	// Of another pipe it is no longer the beginning of a line.
	in = again(t, in)
	in.From(Pipe{1, 3})
	if got := all(in); !slices.Equal(got, []string{"four"}) {
		t.Errorf("%q", got)
	}
	_ = in.Read(strings.NewReader("five\nsix"))
	if got := all(in); !slices.Equal(got, []string{"five"}) {
		t.Errorf("%q", got)
	}
	in.End()
	if got := all(in); !slices.Equal(got, []string{"six"}) || in.Left() != 0 {
		t.Errorf("%q", got)
	}
}

// TestFiles: to read a file again is to begin anew, so that no line goes on in it.
func TestFiles(t *testing.T) {
	in := plain(t)
	in.From(Pipe{})
	_ = in.Read(strings.NewReader("one\nt"))
	_ = all(in)
	in = again(t, in)
	in.From(Pipe{})
	if got := all(in); !slices.Equal(got, []string{"t"}) {
		t.Errorf("%q", got)
	}
}

func TestLongLines(t *testing.T) {
	in := plain(t)
	pipe := Pipe{1, 2}
	in.From(pipe)
	long := strings.Repeat("é", MaxLine/2+10)
	r := strings.NewReader("\n" + long + "\nshort\n" + strings.Repeat("x", MaxLine) + "\n" +
		strings.Repeat("y", MaxLine+1) + "\n")
	var got []string
	for {
		err := in.Read(r)
		got = append(got, all(in)...)
		if err != nil {
			break
		}
		in = again(t, in)
		in.From(pipe)
	}
	want := []string{
		"", "[" + long[:MaxLine] + "]", "[" + long[MaxLine:] + "]", "short", strings.Repeat("x", MaxLine),
		"[" + strings.Repeat("y", MaxLine) + "]", "[y]",
	}
	if !slices.Equal(got, want) {
		for i := range got {
			t.Errorf("%d bytes", len(got[i]))
		}
	}
}

// TestKillAnywhere kills between any two steps, the reader in the middle of a note, too: every line
// is taken once, in order.
func TestKillAnywhere(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	var text bytes.Buffer
	var want []string
	for i := range 3000 {
		line := fmt.Sprint(i, strings.Repeat("p", r.IntN(1+r.IntN(5000))))
		want = append(want, line)
		text.WriteString(line + "\n")
	}
	in, pipe := plain(t), Pipe{1, 2}
	var got []string
	for text.Len() > 0 {
		in.From(pipe)
		piece := bytes.NewReader(text.Next(1 + r.IntN(200_000)))
		for piece.Len() > 0 {
			if r.IntN(4) == 0 {
				killed(func() { _ = in.Read(dies{piece}) })
				in = again(t, in)
				in.From(pipe)
			} else if err := in.Read(piece); err != nil {
				t.Fatal(err)
			}
			for line, _, ok := in.Next(); ok; line, _, ok = in.Next() {
				// Killed in the middle of the note: another one stands half in the place that does
				// not count.
				if r.IntN(100) == 0 {
					half := in.mem[notesAt+(1-order.Uint64(in.mem[whichAt:]))*noteSize:]
					for i := range r.IntN(noteSize) {
						half[i] = byte(r.Uint32())
					}
					in = again(t, in)
					in.From(pipe)
					continue
				}
				got = append(got, string(line))
				in.Took(1)
			}
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("%d lines, want %d", len(got), len(want))
	}
}

func TestNext(t *testing.T) {
	in := plain(t)
	in.From(Pipe{1, 2})
	in.Enter([16]byte{7})
	_ = in.Read(strings.NewReader("a\nb\nc\n"))
	for _, key := range []uint64{5, 9} {
		if _, _, ok := in.Next(); !ok {
			t.Fatal("no line")
		}
		in.Took(key)
		if ring, got := again(t, in).Last(); got != key || ring != [16]byte{7} {
			t.Errorf("%v, %d", ring, got)
		}
	}
	if got := all(again(t, in)); !slices.Equal(got, []string{"c"}) {
		t.Errorf("%q", got)
	}
}

// FuzzInlet: whatever stands in the file, it is none, or what is in it is read, within bounds.
func FuzzInlet(f *testing.F) {
	head := func(set func(b []byte)) []byte {
		b := fresh()[:areasAt]
		copy(b, magic)
		set(b)
		return b[:notesAt+2*noteSize]
	}
	f.Add(head(func([]byte) {}), []byte("one\ntwo"))
	f.Add(head(func(b []byte) { order.PutUint64(b[notesAt+16:], areaSize) }), []byte("one\n"))
	f.Add(head(func(b []byte) { order.PutUint64(b[notesAt+8:], 1<<63) }), []byte{})
	f.Add(head(func(b []byte) { order.PutUint64(b[whichAt:], 2) }), []byte{})
	f.Add([]byte("SPILLINL"), []byte{})
	f.Fuzz(func(t *testing.T, head, text []byte) {
		in := &Inlet{mem: fresh()}
		copy(in.mem[:areasAt], head)
		copy(in.areaOf(0), text)
		if err := in.begin(); err != nil {
			if !errors.Is(err, errCorrupt) {
				t.Error(err)
			}
			return
		}
		in.From(Pipe{1, 2})
		left := in.Left()
		for range 2 {
			n := 0
			for line, _, ok := in.Next(); ok; line, _, ok = in.Next() {
				n += len(line)
				in.Took(1)
			}
			if n > left {
				t.Fatalf("%d bytes of %d", n, left)
			}
			in.End()
		}
		if in.Left() != 0 {
			t.Errorf("%d bytes are left", in.Left())
		}
		if err := in.Read(strings.NewReader("more\n")); err != nil {
			t.Error(err)
		}
		if got := all(in); len(got) != 1 || strings.Trim(got[0], "[]") != "more" {
			t.Errorf("%q", got)
		}
	})
}

func BenchmarkInlet(b *testing.B) {
	text := bytes.Repeat([]byte("2026-11-21T02:03:04Z INFO order placed id=42 customer=ada took=12ms from=10.0.0.7\n"),
		64<<10/82)
	in := plain(b)
	in.From(Pipe{1, 2})
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	r := bytes.NewReader(text)
	for b.Loop() {
		r.Reset(text)
		_ = in.Read(r)
		for _, _, ok := in.Next(); ok; _, _, ok = in.Next() {
			in.Took(1)
		}
	}
}
