// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// bareGroup is the least that a group commit can be: one goroutine gathers the records of all who
// wait, writes them with one call into a file whose blocks were written before, syncs it, and
// answers. No checksum, no format, no recovery.
type bareGroup struct {
	f    *os.File
	reqs chan bareReq
	done chan struct{}
}

type bareReq struct {
	rec []byte
	ack chan error
}

const bareFile = 16 << 20

func newBareGroup(b *testing.B) *bareGroup {
	f, err := os.Create(filepath.Join(b.TempDir(), "bare"))
	if err != nil {
		b.Fatal(err)
	}
	if _, err := f.Write(make([]byte, bareFile)); err != nil {
		b.Fatal(err)
	}
	if err := f.Sync(); err != nil {
		b.Fatal(err)
	}
	g := &bareGroup{f: f, reqs: make(chan bareReq, 1024), done: make(chan struct{})}
	go g.run()
	return g
}

func (g *bareGroup) run() {
	defer close(g.done)
	var buf []byte
	var acks []chan error
	off := int64(0)
	for r := range g.reqs {
		buf, acks = append(buf[:0], r.rec...), append(acks[:0], r.ack)
		for more := true; more; {
			select {
			case r, ok := <-g.reqs:
				if !ok {
					more = false
					break
				}
				buf, acks = append(buf, r.rec...), append(acks, r.ack)
			default:
				more = false
			}
		}
		if off+int64(len(buf)) > bareFile {
			off = 0
		}
		_, err := g.f.WriteAt(buf, off)
		if err == nil {
			err = datasync(g.f)
		}
		off += int64(len(buf))
		for _, a := range acks {
			a <- err
		}
	}
}

func (g *bareGroup) close() {
	close(g.reqs)
	<-g.done
	g.f.Close()
}

// appenders runs b.N appends on n goroutines.
func appenders(b *testing.B, n int, do func(worker int) error) {
	var wg sync.WaitGroup
	for w := range n {
		wg.Go(func() {
			for i := w; i < b.N; i += n {
				if err := do(w); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// BenchmarkSync compares appenders that each wait for Sync with the same number waiting for a bare
// group commit.
func BenchmarkSync(b *testing.B) {
	rec := testRecord(1, 300)
	for _, n := range []int{1, 16, 64} {
		b.Run(fmt.Sprintf("bare/%d", n), func(b *testing.B) {
			g := newBareGroup(b)
			defer g.close()
			acks := make([]chan error, n)
			for i := range acks {
				acks[i] = make(chan error, 1)
			}
			b.SetBytes(int64(len(rec)))
			b.ResetTimer()
			appenders(b, n, func(w int) error {
				g.reqs <- bareReq{rec, acks[w]}
				return <-acks[w]
			})
		})
		b.Run(fmt.Sprintf("journal/%d", n), func(b *testing.B) {
			j, r := benchJournal(b)
			stop := drain(j, r)
			defer stop()
			b.SetBytes(int64(len(rec)))
			b.ReportAllocs()
			b.ResetTimer()
			appenders(b, n, func(int) error {
				p, err := j.Append(rec)
				if err != nil {
					return err
				}
				return j.Sync(bg, p)
			})
			b.StopTimer()
			st := j.Stats()
			b.ReportMetric(float64(st.Records)/float64(st.Syncs), "records/sync")
		})
	}
}

func benchJournal(b *testing.B) (*Journal, *Reader) {
	j, err := Open(b.TempDir(), &Options{Report: func(err error) { b.Error(err) }})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { j.Close() })
	return j, mustReader(b, j, "r")
}

// drain moves the cursor along, so that segments are recycled, without reading.
func drain(j *Journal, r *Reader) (stop func()) {
	done, quit := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			p := j.Synced()
			if int64(p-r.Pos()) > 4<<20 || p.seq() != r.Pos().seq() {
				_ = r.SkipTo(p)
				_ = r.Commit(p, nil)
			}
			j.mu.Lock()
			if j.more == nil {
				j.more = make(chan struct{})
			}
			c := j.more
			j.mu.Unlock()
			select {
			case <-c:
			case <-quit:
				return
			}
		}
	}()
	return func() { close(quit); <-done }
}

// cpu reports the processor time that an operation took, user and system: what the disk takes is
// not in it.
func cpu(b *testing.B) (stop func()) {
	from := cpuTime()
	return func() { b.ReportMetric(float64(cpuTime()-from)/float64(b.N), "cpu-ns/op") }
}

// BenchmarkBulk appends chunks of 140 KB, flushed, and compares with what must be done at least:
// copy, checksum, write.
func BenchmarkBulk(b *testing.B) {
	rec := testRecord(1, 140_000)
	b.Run("bare", func(b *testing.B) {
		f, err := os.Create(filepath.Join(b.TempDir(), "bare"))
		if err != nil {
			b.Fatal(err)
		}
		defer f.Close()
		const size = 4 * bareFile
		if _, err := f.Write(make([]byte, size)); err != nil {
			b.Fatal(err)
		}
		sync, done := make(chan bool, 2), make(chan bool)
		go func() {
			for range sync {
				_ = datasync(f)
			}
			close(done)
		}()
		buf := make([]byte, 0, len(rec)+16)
		off, unsynced := int64(0), 0
		b.SetBytes(int64(len(rec)))
		b.ReportAllocs()
		defer cpu(b)()
		for b.Loop() {
			buf = append(buf[:0], rec...)
			crc32.Checksum(buf, castagnoli)
			if off+int64(len(buf)) > size {
				off = 0
			}
			if _, err := f.WriteAt(buf, off); err != nil {
				b.Fatal(err)
			}
			off += int64(len(buf))
			if unsynced += len(buf); unsynced > syncThreshold {
				sync <- true
				unsynced = 0
			}
		}
		close(sync)
		<-done
	})
	b.Run("journal", func(b *testing.B) {
		j, r := benchJournal(b)
		stop := drain(j, r)
		defer stop()
		b.SetBytes(int64(len(rec)))
		b.ReportAllocs()
		defer cpu(b)()
		for b.Loop() {
			p, err := j.Append(rec)
			if err != nil {
				b.Fatal(err)
			}
			if err := j.Flush(bg, p); err != nil {
				b.Fatal(err)
			}
		}
		b.Logf("%+v", j.Stats())
	})
}

// BenchmarkAppend is the cost of an append alone: batches are written, nobody waits.
func BenchmarkAppend(b *testing.B) {
	for _, size := range []int{200, 4000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			j, r := benchJournal(b)
			stop := drain(j, r)
			defer stop()
			rec := testRecord(1, size)
			b.SetBytes(int64(size))
			b.ReportAllocs()
			defer cpu(b)()
			for b.Loop() {
				if _, err := j.Append(rec); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkRead goes through what is in the page cache.
func BenchmarkRead(b *testing.B) {
	for _, tt := range []struct {
		size int
		keep bool // the caller wants the bytes for itself
	}{{300, false}, {140_000, false}, {140_000, true}} {
		size := tt.size
		b.Run(fmt.Sprintf("%d/keep=%v", size, tt.keep), func(b *testing.B) {
			j, err := Open(b.TempDir(), nil)
			if err != nil {
				b.Fatal(err)
			}
			defer j.Close()
			for range (32 << 20) / size {
				if _, err := j.Append(testRecord(1, size)); err != nil {
					b.Fatal(err)
				}
			}
			if err := j.Sync(bg, j.Stats().Last); err != nil {
				b.Fatal(err)
			}
			r := mustReader(b, j, "r")
			b.SetBytes(int64(size))
			b.ReportAllocs()
			var room []byte
			for b.Loop() {
				most := int64(0)
				if tt.keep {
					most = 1 << 20
				}
				rec, ok, err := r.TryNextTo(room, most)
				if err != nil {
					b.Fatal(err)
				}
				if !ok {
					r.seekLocked(0)
				} else if rec.Own {
					room = rec.Data
				}
			}
		})
	}
}

// BenchmarkFlush is one small record handed to the kernel at a time.
func BenchmarkFlush(b *testing.B) {
	j, r := benchJournal(b)
	defer drain(j, r)()
	rec := testRecord(1, 300)
	b.SetBytes(300)
	b.ReportAllocs()
	defer cpu(b)()
	for b.Loop() {
		p, err := j.Append(rec)
		if err == nil {
			err = j.Flush(bg, p)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}
