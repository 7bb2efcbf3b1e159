// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/needs"
	"github.com/spillwaylog/spillway/journal"
	"github.com/spillwaylog/spillway/msgpack"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// numbered returns a chunk whose events are the numbers from first on.
func numbered(tag string, first, n int) *forward.Chunk {
	c := &forward.Chunk{Tag: tag, Events: n}
	for i := first; i < first+n; i++ {
		c.Entries = appendNumber(c.Entries, i)
	}
	return c
}

func appendNumber(b []byte, i int) []byte {
	b = msgpack.AppendArrayHeader(b, 2)
	b = msgpack.AppendInt(b, 1_700_000_000)
	b = msgpack.AppendMapHeader(b, 1)
	b = msgpack.AppendString(b, "n")
	return msgpack.AppendInt(b, int64(i))
}

// numbers reads the events of a chunk back.
func numbers(c *forward.Chunk) (all []int) {
	prefix := appendNumber(nil, 0)
	prefix = prefix[:len(prefix)-1]
	for rest := c.Entries; len(rest) > 0; {
		if !bytes.HasPrefix(rest, prefix) {
			panic(fmt.Sprintf("no numbered entry: %x", rest))
		}
		rest = rest[len(prefix):]
		t, n, err := msgpack.ReadToken(rest)
		i, ok := t.Int()
		if err != nil || !ok {
			panic(fmt.Sprintf("no number: %x", rest))
		}
		all = append(all, int(i))
		rest = rest[n:]
	}
	return all
}

// zipped returns a chunk as a client that compresses sends it.
func zipped(c *forward.Chunk) *forward.Chunk {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write(c.Entries)
	_ = z.Close()
	return &forward.Chunk{Tag: c.Tag, Events: c.Events, Compressed: b.Bytes(), Compression: "gzip"}
}

// openJournal opens a journal without waiting for a real disk.
func openJournal(t testing.TB, dir string, d *disk) *journal.Journal {
	t.Helper()
	j, err := journal.Open(dir, &journal.Options{FS: d, SegmentBytes: 64 << 10, Report: func(err error) {
		if !d.dead.Load() {
			t.Error(err)
		}
	}})
	must(t, err)
	return j
}

func appendChunk(t testing.TB, j *journal.Journal, c *forward.Chunk) journal.Position {
	t.Helper()
	p, err := j.Append(c.AppendHead(nil), c.Body(), c.AppendTail(nil))
	must(t, err)
	return p
}

func syncAll(t testing.TB, j *journal.Journal) {
	t.Helper()
	must(t, j.Sync(context.Background(), j.Stats().Last))
}

func openReader(t testing.TB, j *journal.Journal) *journal.Reader {
	t.Helper()
	r, err := j.Reader("out")
	must(t, err)
	return r
}

// seeds runs a test with so many seeds, or with $SPILLWAY_SEED alone.
func seeds(t *testing.T, short, long int, test func(t *testing.T, r *rand.Rand)) {
	t.Helper()
	seed, rounds := uint64(time.Now().UnixNano()), needs.Rounds(t, "SPILLWAY_FOLLOW_ROUNDS", short, long)
	if text := os.Getenv("SPILLWAY_SEED"); text != "" {
		var err error
		seed, err = strconv.ParseUint(text, 10, 64)
		must(t, err)
		rounds = 1
	}
	for i := range rounds {
		s := seed + uint64(i)
		t.Run(fmt.Sprintf("SPILLWAY_SEED=%d", s), func(t *testing.T) {
			test(t, rand.New(rand.NewPCG(s, 0)))
		})
	}
}

// dice are what the far side of an output throws. Their lock is that of the far side, too.
type dice struct {
	mu sync.Mutex
	r  *rand.Rand
}

func (d *dice) random(n int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.r.IntN(n)
}
