// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/await"
	"github.com/spillwaylog/spillway/internal/codes"
	"github.com/spillwaylog/spillway/internal/successor"
	"github.com/spillwaylog/spillway/internal/urls"
)

// How this file is organised. An input ring:// takes over what dead processes left (package
// successor), one legacy at a time. Its chunks have ids of their own, by which the store knows
// those that the dead process had sent, and those that were stored before a crash of the collector.
// The ring is told that a chunk is done once it is synced. A crash in between may be long ago when
// the next start comes, and the store's memory is short; so the ids of what is stored and not done
// are the input's position.

const (
	ringAfter = 5 * time.Second
	maxRing   = 64 << 20
	maxIDs    = 64 // that a position has: as many as successor hands out at once, and some of what was left
)

// A ringInput is an input ring://.
type ringInput struct {
	name      string
	options   successor.Options
	successor *successor.Successor
	account   *account
	reporter  *reporter
	ids       []successor.ID // of chunks that are stored, and perhaps not done

	bytes, open, bad, rings, spills, lost atomic.Int64
}

// A syncedSink returns from synced when all that was stored is on the disk.
type syncedSink interface {
	Sink
	synced(context.Context) error
}

// planRings understands the URL of an input of rings.
func planRings(u *urls.URL) (*ringInput, error) {
	p := u.Params()
	r := &ringInput{options: successor.Options{
		Path:    u.Path,
		After:   p.Duration("after", ringAfter),
		Any:     p.Bool("any", false),
		MaxRing: p.Size("max_ring", maxRing),
	}}
	return r, p.Err()
}

// openFor opens the input for a collector: there is nothing to hold yet.
func (r *ringInput) openFor(c *Collector, a *account) error {
	r.name, r.account, r.reporter = a.name, a, c.reporter
	r.options.Report = func(err error) {
		r.reporter.report(codes.RingError, "rings",
			fmt.Errorf("%s: %w", r.name, err))
	}
	if err := successor.Supported(); err != nil {
		return err
	}
	path, err := filepath.Abs(r.options.Path)
	r.options.Path = path
	return err
}

// Stats implements Input.
func (r *ringInput) Stats() Received {
	return Received{
		Bytes: r.bytes.Load(), Connections: r.open.Load(), Invalid: r.bad.Load(),
		Rings: r.rings.Load(), Spills: r.spills.Load(), Lost: r.lost.Load(),
	}
}

// Run takes over rings until ctx ends.
func (r *ringInput) Run(ctx context.Context, sink Sink) error {
	codes.RingsWatched.Info(r.reporter.log, "looking for rings", "input", r.name, "path", r.options.Path, "after",
		r.options.After)
	r.ids = parseIDs(sink.Position())
	r.options.GaveUp = ctx.Done()
	r.successor = successor.New(&r.options)
	for {
		due, err := r.successor.Look()
		if err != nil {
			r.options.Report(err)
		}
		for _, path := range due {
			if ctx.Err() != nil {
				return nil
			}
			if err := r.take(ctx, sink.(syncedSink), path); err != nil {
				r.options.Report(err)
			}
		}
		if await.Pause(ctx, r.successor.Every()) != nil {
			return nil
		}
	}
}

// take takes over one ring. What it cannot do with it stays for the next try.
func (r *ringInput) take(ctx context.Context, sink syncedSink, path string) error {
	l := r.successor.Take(path, r.ids)
	if l == nil {
		return nil
	}
	r.open.Add(1)
	defer r.open.Add(-1)
	before := r.account.counts()
	bad, lost, spills := uint64(0), uint64(0), 0
	note := func() {
		r.bad.Add(int64(l.Bad - bad))
		r.lost.Add(int64(l.Lost - lost))
		r.spills.Add(int64(l.Spills - spills))
		bad, lost, spills = l.Bad, l.Lost, l.Spills
	}
	defer note()
	for {
		chunks, err := l.Next()
		note()
		if err == nil && len(chunks) == 0 {
			break
		}
		if err == nil {
			err = ctx.Err()
		}
		if err == nil {
			err = r.put(context.WithoutCancel(ctx), sink, chunks)
		}
		if err == nil {
			err = l.Done()
		}
		if err != nil {
			if errors.Is(err, errTakesNothing) || ctx.Err() != nil {
				err = nil // the collector ends
			}
			return wrap(path, errors.Join(err, l.Leave()))
		}
		r.forget(chunks)
	}
	r.ids = slices.DeleteFunc(r.ids, func(id successor.ID) bool { return slices.Contains(l.Known, id) })
	if err := l.Finish(); err != nil {
		return wrap(path, err)
	}
	r.rings.Add(1)
	note() // before it is said
	r.announce(l, before)
	return nil
}

func wrap(path string, err error) error {
	if err != nil {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return err
}

// announce says that a ring is taken over.
func (r *ringInput) announce(l *successor.Legacy, before Counts) {
	leftOut, ok := r.reporter.take(codes.RingTaken)
	if !ok {
		return
	}
	now := r.account.counts()
	args := []any{
		"ring", l.Path, "input", r.name, "pid", l.Owner.PID, "stored", now.Stored - before.Stored,
		"repeated", now.Repeated - before.Repeated, "spills", l.Spills,
	}
	if l.Bad+l.Lost > 0 {
		args = append(args, "invalid", l.Bad, "lost", l.Lost)
	}
	codes.RingTaken.Info(r.reporter.log, "a dead process's ring is taken over", withLeftOut(leftOut, args...)...)
}

// put stores chunks, and returns when they are what an ack promises, and synced at least.
func (r *ringInput) put(ctx context.Context, sink syncedSink, chunks []*forward.Chunk) error {
	var durable func(context.Context) error
	for _, c := range chunks {
		// One by one: what a position covers is in its record. An id is kept once its chunk is
		// stored: what is not must come again.
		with := append(slices.Clone(r.ids), successor.ID(c.ID))
		if n := len(with) - maxIDs; n > 0 {
			with = with[n:]
		}
		wait, err := sink.Store(ctx, []*forward.Chunk{c}, appendIDs(nil, with))
		if err == nil || errors.Is(err, forward.ErrMalformed) {
			r.ids = with
		}
		switch {
		case errors.Is(err, forward.ErrMalformed): // it comes to nothing the next time, too
			r.bad.Add(int64(max(1, min(c.Events, len(c.Entries))))) // what it says need not be true
			r.options.Report(fmt.Errorf("a chunk is left out: %w", err))
		case err != nil:
			return err
		default:
			durable = wait
			r.bytes.Add(int64(len(c.Entries)))
		}
	}
	if durable == nil {
		return nil
	}
	if err := durable(ctx); err != nil {
		return err
	}
	return sink.synced(ctx)
}

// forget has no more to do with the ids of chunks that are done.
func (r *ringInput) forget(chunks []*forward.Chunk) {
	for _, c := range chunks {
		if i := slices.Index(r.ids, successor.ID(c.ID)); i >= 0 {
			r.ids = slices.Delete(r.ids, i, i+1)
		}
	}
}

func appendIDs(b []byte, ids []successor.ID) []byte {
	for i := range ids {
		b = append(b, ids[i][:]...)
	}
	return b
}

func parseIDs(b []byte) (ids []successor.ID) {
	for chunk := range slices.Chunk(bytes.Clone(b), len(successor.ID{})) {
		if len(chunk) == len(successor.ID{}) {
			ids = append(ids, successor.ID(chunk))
		}
	}
	return ids
}
