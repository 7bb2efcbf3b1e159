// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"
	"testing"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/journal"
	"github.com/spillwaylog/spillway/msgpack"
)

// fakeJournal gives positions, and remembers what lies behind each, as a disk does.
type fakeJournal struct {
	mu    sync.Mutex
	more  *sync.Cond
	end   journal.Position
	after map[journal.Position]journal.Position
	data  map[journal.Position]uint64 // seed of the chunk that ends there
}

func newFakeJournal() *fakeJournal {
	j := &fakeJournal{after: map[journal.Position]journal.Position{}, data: map[journal.Position]uint64{}}
	j.more = sync.NewCond(&j.mu)
	return j
}

func (j *fakeJournal) append(seed uint64, c *forward.Chunk) stored {
	j.mu.Lock()
	defer j.mu.Unlock()
	a := stored{prev: j.end, pos: j.end + 8 + journal.Position(len(c.Entries)+7)&^7, chunk: c}
	j.end = a.pos
	j.after[a.prev], j.data[a.pos] = a.pos, seed
	j.more.Broadcast()
	return a
}

func (j *fakeJournal) next(at journal.Position) (pos journal.Position, seed uint64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	pos = j.after[at]
	return pos, j.data[pos]
}

// recentChunk is a chunk all of whose bytes follow from its seed.
func recentChunk(seed uint64, size int) *forward.Chunk {
	b := make([]byte, max(size, 8))
	binary.LittleEndian.PutUint64(b, seed)
	for i := 8; i < len(b); i++ {
		b[i] = byte(seed) + byte(i)
	}
	return &forward.Chunk{
		Tag: fmt.Sprint("tag.", seed%3), ID: binary.BigEndian.AppendUint64(nil, seed), Entries: b,
		Events: 1 + size/100, UniqueID: seed%2 == 0,
	}
}

func wantChunk(t testing.TB, c *forward.Chunk, seed uint64) {
	t.Helper()
	want := recentChunk(seed, len(c.Entries))
	if !reflect.DeepEqual(c, want) {
		t.Errorf("chunk %d is %.200v, want %.200v", seed, c, want)
	}
}

func TestRecentIsTheRecord(t *testing.T) {
	entries := []byte{0x92, 1, 0x80, 0x92, 2, 0x80}
	var zip bytes.Buffer
	z := gzip.NewWriter(&zip)
	if _, err := z.Write(entries); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	zipped := zip.Bytes()
	for name, c := range map[string]*forward.Chunk{
		"plain":    {Tag: "a", Entries: entries, Events: 2},
		"id":       {Tag: "a", ID: []byte("id"), Entries: entries, Events: 2, UniqueID: true},
		"empty id": {Tag: "", ID: []byte{}, IDBin: true, Entries: entries, Events: 2},
		"signal":   {Tag: "a", Signal: 2, Entries: entries, Events: 2},
		"gzip":     {Tag: "a", ID: []byte("id"), Entries: entries, Compressed: zipped, Compression: "gzip", Events: 2},
		"large":    {Tag: "a", ID: []byte("id"), Entries: bytes.Repeat(entries, 10_000), Events: 20_000},
	} {
		for _, w := range []wants{wantEntries, wantBody, wantEntries | wantBody} {
			t.Run(fmt.Sprint(name, w), func(t *testing.T) {
				tail := appendFingerprint(c.AppendTail(nil), []byte("0123456789abcdef"))
				want, err := forward.ParseChunk(slices.Concat(c.AppendHead(nil), c.Body(), tail))
				if err != nil {
					t.Fatal(err)
				}
				if w&wantEntries != 0 {
					if err := new(forward.Inflater).Inflate(want); err != nil {
						t.Fatal(err)
					}
				}
				if w&wantBody == 0 {
					want.Compressed = nil
				}
				lent := c.Clone()
				// What the input knows, and the record does not say.
				lent.Sent = &forward.Sent{Tag: "b", Entries: []byte("raw")}
				r := newRecent(recentOptions{poison: true})
				p := r.follow(0, w)
				r.put([]stored{{prev: 0, pos: 64, chunk: lent}})
				for _, b := range [][]byte{lent.ID, lent.Entries, lent.Compressed} {
					clear(b) // it was only lent
				}
				it, ok := p.get(0, 64)
				if !ok {
					t.Fatal("it is not there")
				}
				if !reflect.DeepEqual(&it.chunk, want) {
					t.Errorf("%+v, want %+v", it.chunk, *want)
				}
				if it.prev != 0 || it.pos != 64 {
					t.Errorf("it lies at %v to %v", it.prev, it.pos)
				}
				it.Release()
			})
		}
	}
}

// TestRecentFound: what is found, and where nothing is kept.
func TestRecentFound(t *testing.T) {
	chunk := func(n uint64) *forward.Chunk { return recentChunk(n, 100) }
	seen := func(p *recentReader, after, durable journal.Position) bool {
		it, ok := p.get(after, durable)
		if ok {
			it.Release()
		}
		return ok
	}
	t.Run("any order", func(t *testing.T) {
		r := newRecent(recentOptions{})
		p := r.follow(8, wantEntries)
		r.put([]stored{{prev: 8, pos: 16, chunk: chunk(1)}})
		r.put([]stored{{prev: 24, pos: 32, chunk: chunk(3)}})
		r.put([]stored{{prev: 16, pos: 24, chunk: chunk(2)}, {prev: 32, pos: 40, chunk: chunk(4)}})
		for n, at := range []journal.Position{8, 16, 24, 32} {
			it, ok := p.get(at, 40)
			if !ok {
				t.Fatalf("behind %v there is nothing", at)
			}
			wantChunk(t, &it.chunk, uint64(n+1))
			it.Release()
		}
		if seen(p, 40, 40) || seen(p, 12, 40) {
			t.Error("there is something where nothing is")
		}
	})
	t.Run("not durable", func(t *testing.T) {
		r := newRecent(recentOptions{})
		p := r.follow(8, wantEntries)
		r.put([]stored{{prev: 8, pos: 16, chunk: chunk(1)}})
		if seen(p, 8, 8) || !seen(p, 8, 16) {
			t.Error("it is given before it is durable, or not after")
		}
	})
	t.Run("passed", func(t *testing.T) {
		r := newRecent(recentOptions{})
		p, q := r.follow(8, wantEntries), r.follow(8, wantEntries)
		r.put([]stored{{prev: 8, pos: 16, chunk: chunk(1)}, {prev: 16, pos: 24, chunk: chunk(2)}})
		seen(p, 24, 24)
		r.put([]stored{{prev: 24, pos: 32, chunk: chunk(3)}})
		if s := r.picture(); s.Items != 3 {
			t.Errorf("what one has not passed went: %+v", s)
		}
		seen(q, 16, 24)
		r.put([]stored{{prev: 32, pos: 40, chunk: chunk(4)}})
		if s := r.picture(); s.Items != 3 {
			t.Errorf("what all have passed is kept: %+v", s)
		}
		seen(q, 40, 40)
		seen(p, 40, 40)
		r.put([]stored{{prev: 24, pos: 32, chunk: chunk(3)}}) // comes late
		if s := r.picture(); s.Items != 0 {
			t.Errorf("what all have passed is kept: %+v", s)
		}
	})
	t.Run("nobody", func(t *testing.T) {
		r := newRecent(recentOptions{})
		r.put([]stored{{prev: 8, pos: 16, chunk: chunk(1)}})
		none := r.follow(8, 0) // looks at nothing
		r.put([]stored{{prev: 16, pos: 24, chunk: chunk(2)}})
		if s := r.picture(); s.Memory != 0 {
			t.Errorf("kept for nobody: %+v", s)
		}
		none.leave()
		p := r.follow(24, wantEntries)
		r.put([]stored{{prev: 24, pos: 32, chunk: chunk(3)}})
		if !seen(p, 24, 32) {
			t.Error("not kept for one that came")
		}
		p.leave()
		if s := r.picture(); s.Items != 0 || s.Memory != s.Idle+indexBytes(r) {
			t.Errorf("kept for one that left: %+v", s)
		}
	})
	t.Run("far", func(t *testing.T) {
		const limit = 1 << 20
		j, r := newFakeJournal(), newRecent(recentOptions{bytes: limit})
		p := r.follow(0, wantEntries)
		for n := range uint64(10_000) {
			r.put([]stored{j.append(n, recentChunk(n, 1000))})
		}
		// It stands at the start: what came when that was too far away is not kept, and what was
		// kept before may still be of use.
		s := r.picture()
		if it := r.findLast(); it == nil || it.pos > 2*limit || s.Items == 0 {
			t.Errorf("kept for one that is far: %+v, up to %+v", s, it)
		}
		// It reads from the disk, and things come meanwhile: it meets them.
		at, n, hit := journal.Position(0), uint64(10_000), false
		for !hit {
			if hit = seen(p, at, j.end); hit && at < 2*limit {
				hit = false // what was kept at first
			}
			at, _ = j.next(at)
			if n++; n%3 == 0 && !hit {
				r.put([]stored{j.append(n, recentChunk(n, 1000))})
			}
			if n > 100_000 {
				t.Fatalf("it is never near again: at %v of %v", at, j.end)
			}
		}
	})
	t.Run("wants", func(t *testing.T) {
		r := newRecent(recentOptions{})
		p := r.follow(8, wantBody)
		zip := &forward.Chunk{Tag: "a", Entries: []byte{1, 2}, Compressed: []byte{3}, Compression: "gzip", Events: 1}
		r.put([]stored{{prev: 8, pos: 16, chunk: zip}})
		q := r.follow(8, wantEntries)
		if seen(q, 8, 16) || !seen(p, 8, 16) {
			t.Error("a chunk without entries is given to one that looks at them, or not to one that does not")
		}
	})
	t.Run("too large", func(t *testing.T) {
		r := newRecent(recentOptions{bytes: 1 << 20})
		p := r.follow(8, wantEntries)
		r.put([]stored{{prev: 8, pos: 16, chunk: recentChunk(1, 300_000)}, {prev: 16, pos: 24, chunk: chunk(2)}})
		if seen(p, 8, 24) || !seen(p, 16, 24) || r.picture().Refused != 1 {
			t.Errorf("%+v", r.picture())
		}
	})
}

func (r *recent) findLast() *item {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.kept == 0 {
		return nil
	}
	return r.queue[(r.first+r.kept-1)&(len(r.queue)-1)]
}

func indexBytes(r *recent) int64 {
	return int64(len(r.index)+len(r.queue)) * int64(reflect.TypeFor[*item]().Size())
}

// TestRecentMemory does anything at all, and wants that what somebody holds stays as it is, that no
// more memory is taken than allowed, that all of it is counted, and that all of it comes back.
func TestRecentMemory(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	for round := range uint64(60) {
		rnd := rand.New(rand.NewPCG(seed, round))
		limit := int64(32<<10) << rnd.IntN(8)
		r := newRecent(recentOptions{bytes: limit, items: rnd.IntN(3) * (1 + rnd.IntN(300)), poison: true})
		j := newFakeJournal()
		type held struct {
			it   *item
			seed uint64
		}
		var holds []held
		var readers []*recentReader
		var ats []journal.Position
		check := func() {
			r.mu.Lock()
			defer r.mu.Unlock()
			sum, all := indexBytes(r), map[*slab]bool{}
			for i := range r.kept {
				all[r.queue[(r.first+i)&(len(r.queue)-1)].slab] = true
			}
			for _, h := range holds {
				all[h.it.slab] = true
			}
			if r.filling != nil {
				all[r.filling] = true
			}
			idle := int64(0)
			for _, spare := range r.slabs.spare {
				for _, s := range spare {
					if all[s] || s.refs.Load() != 0 {
						t.Fatalf("round %d: an idle slab is in use", round)
					}
					all[s] = true
					idle += s.class.cost()
				}
			}
			for s := range all {
				sum += s.class.cost()
			}
			if sum != r.slabs.memory || idle != r.slabs.idle || sum > limit {
				t.Fatalf("round %d: slabs take %d, idle ones %d, of %d; counted were %d and %d", round, sum, idle,
					limit, r.slabs.memory, r.slabs.idle)
			}
		}
		n := uint64(0)
		for range 2000 {
			switch rnd.IntN(8) {
			case 0, 1, 2:
				var group []stored
				for range 1 + rnd.IntN(6) {
					n++
					size := rnd.IntN(200)
					if rnd.IntN(5) == 0 {
						size = rnd.IntN(1 << rnd.IntN(18))
					}
					group = append(group, j.append(n, recentChunk(n, size)))
				}
				if rnd.IntN(4) == 0 {
					rnd.Shuffle(len(group), func(a, b int) { group[a], group[b] = group[b], group[a] })
				}
				r.put(group)
				for _, a := range group {
					clear(a.chunk.Entries)
				}
			case 3, 4, 5:
				if len(readers) == 0 {
					continue
				}
				k := rnd.IntN(len(readers))
				for range rnd.IntN(10) {
					pos, seed := j.next(ats[k])
					it, ok := readers[k].get(ats[k], j.end)
					if ok {
						if it.pos != pos {
							t.Fatalf("round %d: behind %v comes %v, not %v", round, ats[k], pos, it.pos)
						}
						if rnd.IntN(3) == 0 && len(holds) < 50 {
							it.retain()
							holds = append(holds, held{it, seed})
						}
						wantChunk(t, &it.chunk, seed)
						it.Release()
					}
					if pos > 0 {
						ats[k] = pos
					}
				}
			case 6:
				if len(holds) > 0 {
					k := rnd.IntN(len(holds))
					wantChunk(t, &holds[k].it.chunk, holds[k].seed)
					holds[k].it.Release()
					holds = slices.Delete(holds, k, k+1)
				}
			case 7:
				switch k := rnd.IntN(40); {
				case len(readers) < 3 && k < 10:
					at := journal.Position(0)
					if rnd.IntN(2) == 0 {
						at = j.end
					}
					readers, ats = append(readers, r.follow(at, wantEntries)), append(ats, at)
				case k == 10 && len(readers) > 0:
					readers[0].leave()
					readers, ats = readers[1:], ats[1:]
				case k < 14:
					r.trim()
				}
			}
			check()
		}
		for _, p := range readers {
			p.leave()
		}
		for _, h := range holds {
			wantChunk(t, &h.it.chunk, h.seed)
			h.it.Release()
		}
		holds = nil
		r.trim()
		r.trim()
		if s := r.picture(); s.Items != 0 || s.Memory != indexBytes(r) || s.Idle != 0 {
			t.Fatalf("round %d: at the end %+v", round, s)
		}
	}
}

// TestRecentFollowed: many put, several follow at different speeds and read from the disk what is
// not there. Each gets every chunk, in order.
func TestRecentFollowed(t *testing.T) {
	const putters, each = 8, 400
	j, r := newFakeJournal(), newRecent(recentOptions{bytes: 256 << 10, poison: true})
	room := make(chan struct{}, 300) // the first of those that follow keeps up
	var all sync.WaitGroup
	for w := range uint64(putters) {
		all.Go(func() {
			rnd := rand.New(rand.NewPCG(1, w))
			n := uint64(0)
			for n < each {
				var group []stored
				for range min(1+rnd.IntN(20), each-int(n)) {
					size := 8 + rnd.IntN(300)
					if rnd.IntN(30) == 0 {
						size = rnd.IntN(50_000)
					}
					seed := w<<32 | n
					group = append(group, j.append(seed, recentChunk(seed, size)))
					n++
					room <- struct{}{}
				}
				r.put(group)
				for _, a := range group {
					clear(a.chunk.Entries)
				}
			}
		})
	}
	var speeds [4]int // chunks that each holds at once
	for k := range speeds {
		p := r.follow(0, wantEntries)
		all.Go(func() {
			defer p.leave()
			var window []*item
			var seeds []uint64
			at := journal.Position(0)
			hits := 0
			for n := range putters * each {
				j.mu.Lock()
				for at == j.end {
					j.more.Wait()
				}
				pos, durable := j.after[at], j.end
				seed := j.data[pos]
				j.mu.Unlock()
				if k == 0 {
					<-room
				}
				if it, ok := p.get(at, durable); ok {
					if it.pos != pos {
						t.Errorf("behind %v comes %v, not %v", at, pos, it.pos)
						return
					}
					window, seeds = append(window, it), append(seeds, seed)
					hits++
				}
				if len(window) > k*k || n == putters*each-1 {
					for i, it := range window {
						wantChunk(t, &it.chunk, seeds[i])
						it.Release()
					}
					window, seeds = window[:0], seeds[:0]
				}
				at = pos
			}
			t.Logf("%d of %d from memory", hits, putters*each)
		})
	}
	all.Wait()
	r.trim()
	r.trim()
	if s := r.picture(); s.Items != 0 || s.Memory != indexBytes(r) {
		t.Errorf("at the end %+v", s)
	}
}

// recentPace puts groups of a chunk and follows.
func recentPace(c *forward.Chunk, group int, w wants) func() {
	r := newRecent(recentOptions{})
	p := r.follow(0, w)
	list := make([]stored, group)
	at := journal.Position(0)
	return func() {
		end := at
		for i := range list {
			list[i] = stored{prev: end, pos: end + 64, chunk: c}
			end += 64
		}
		r.put(list)
		for at < end {
			it, ok := p.get(at, end)
			if !ok {
				panic("it is not there")
			}
			at = it.pos
			it.Release()
		}
	}
}

// TestRecentAllocs: none, once there is memory.
func TestRecentAllocs(t *testing.T) {
	for _, size := range []int{100, 130_000} {
		step := recentPace(recentChunk(1, size), 10, wantEntries)
		for range 100 {
			step()
		}
		if n := testing.AllocsPerRun(1000, step); n > 0 {
			t.Errorf("%d bytes: %v allocations", size, n)
		}
	}
}

func BenchmarkRecent(b *testing.B) {
	event := msgpack.AppendBin(nil, make([]byte, 200))
	for _, bb := range []struct{ events, group int }{{1, 1}, {1, 16}, {1, 500}, {100, 16}, {1000, 1}, {1000, 4}} {
		b.Run(fmt.Sprintf("events=%d/group=%d", bb.events, bb.group), func(b *testing.B) {
			c := &forward.Chunk{
				Tag: "tag", ID: make([]byte, 24), Entries: bytes.Repeat(event, bb.events),
				Events: bb.events,
			}
			step := recentPace(c, bb.group, wantEntries)
			b.SetBytes(int64(len(c.Entries) * bb.group))
			b.ReportAllocs()
			for b.Loop() {
				step()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*bb.group), "ns/chunk")
		})
	}
	b.Run("nobody", func(b *testing.B) {
		r := newRecent(recentOptions{})
		list := make([]stored, 16)
		for b.Loop() {
			r.put(list)
		}
	})
	b.Run("far", func(b *testing.B) {
		r := newRecent(recentOptions{})
		r.follow(0, wantEntries)
		c := recentChunk(1, 200)
		list, at := make([]stored, 16), journal.Position(64)
		for b.Loop() {
			for i := range list {
				list[i] = stored{prev: at, pos: at + 64, chunk: c}
				at += 64
			}
			r.put(list)
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*16), "ns/chunk")
	})
}

// recentPicture is what a recent has at one moment.
type recentPicture struct {
	recentStats
	Items        int
	Memory, Idle int64 // bytes; of these, those that nothing lies in
}

func (r *recent) picture() recentPicture {
	r.mu.Lock()
	defer r.mu.Unlock()
	return recentPicture{r.stats, r.kept, r.slabs.memory, r.slabs.idle}
}
