// SPDX-License-Identifier: Apache-2.0

package letters

import (
	"encoding/hex"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/needs"
	"github.com/spillwaylog/spillway/msgpack"
)

func TestMain(m *testing.M) { os.Exit(needs.Main(m)) }

// entries packs events whose records are {"n": number}.
func entries(numbers ...uint64) []byte {
	var b []byte
	for _, n := range numbers {
		b = append(b, 0x92)
		b = forward.AppendEventTime(b, 1795226584, uint32(n))
		b = msgpack.AppendMapHeader(b, 1)
		b = msgpack.AppendString(b, "n")
		b = msgpack.AppendInt(b, int64(n))
	}
	return b
}

// letter is one of a record that ends at position, whose entries are numbered from it.
func letter(output string, position uint64, events int) Letter {
	numbers := make([]uint64, events)
	for i := range numbers {
		numbers[i] = position + uint64(i)
	}
	return Letter{
		Output: output, Reason: "400 Bad Request: no such index", Time: time.Unix(1795226600, 5).UTC(),
		Position: position,
		Chunk: &forward.Chunk{
			Tag: "app.web", ID: []byte("the sender's"), Entries: entries(numbers...),
			Events: events,
		},
	}
}

// goldenGzip is three events, compressed.
const goldenGzip = "1f8b08000000000002039b749d219be1f70d06060386c68579e71918181841ec49706146246146843013923013004894291f45000000"

func unhexed(s string) []byte {
	b, err := hex.DecodeString(s)
	if err != nil {
		panic(err)
	}
	return b
}

func mustOpen(t testing.TB, dir string, o *Options) *Store {
	t.Helper()
	s, err := Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func mustPut(t testing.TB, s *Store, letters ...Letter) {
	t.Helper()
	if err := s.Put(t.Context(), letters...); err != nil {
		t.Fatal(err)
	}
}

func mustClose(t testing.TB, c interface{ Close() error }) {
	t.Helper()
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
}

// list reads what a directory holds, as output@position each.
func list(t testing.TB, dir string) []string {
	t.Helper()
	l, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	if err := l.Letters(func(e *Entry) bool {
		all = append(all, name(e))
		return true
	}); err != nil {
		t.Fatal(err)
	}
	return all
}

func name(e *Entry) string {
	if e.Err != nil {
		return "unreadable"
	}
	return fmt.Sprintf("%s@%d", e.Output, e.Position)
}

func mustTake(t testing.TB, dir, output string) *Taker {
	t.Helper()
	taker, err := Take(dir, output, func(err error) { t.Error(err) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { taker.Close() })
	return taker
}

// mustNext returns the next letter, nil at the end.
func mustNext(t testing.TB, taker *Taker) *Entry {
	t.Helper()
	e, err := taker.Next()
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// rest takes all that is left.
func rest(t testing.TB, taker *Taker) []*Entry {
	t.Helper()
	var all []*Entry
	for e := mustNext(t, taker); e != nil; e = mustNext(t, taker) {
		all = append(all, e)
	}
	return all
}
