// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/spillwaylog/spillway/forward"
)

// grace is how much longer than its context Close may take to put things away, each step of it.
const grace = 100 * time.Millisecond

// saving is the same for writing to disk what would be lost with plain memory.
const saving = 500 * time.Millisecond

// errUnread is why something is left though Close had the time to deliver it.
var errUnread = errors.New("mover: what dead processes left cannot be read now")

// Close stops accepting, flushes until ctx ends, and lets go of everything, the destination
// included. When it could not deliver all, its error wraps a *LeftError. What it could not stop, a
// call that hangs in a disk or in the destination, is named in the error; it touches nothing of the
// caller's. Calls after the first wait for it.
func (m *Mover) Close(ctx context.Context) error {
	if m.closed.CompareAndSwap(false, true) {
		close(m.closing)
		m.closeErr = m.doClose(ctx)
		close(m.shut)
	}
	select {
	case <-m.shut:
		return m.closeErr
	default:
	}
	select {
	case <-m.shut:
		return m.closeErr
	case <-ctx.Done():
		return fmt.Errorf("mover: close: %w", ctx.Err())
	}
}

func (m *Mover) doClose(ctx context.Context) error {
	m.rings.seal()
	var errs []error
	err := m.mail.ask(ctx, func() { m.enter(sealed); m.tell() })
	if err == nil {
		flushing, cancel := m.untilPour(ctx)
		err = m.Flush(flushing)
		if err == nil { // what dead processes had dropped may have become known, and been told, only meanwhile
			if err = m.mail.ask(flushing, m.tell); err == nil {
				err = m.Flush(flushing)
			}
		}
		cancel()
	}
	late := ctx
	if err != nil {
		// The time is up, or nearly: what follows has a little of its own.
		asking, cancel := m.orGrace(ctx, grace)
		aerr := m.mail.ask(asking, func() { m.enter(stopped) })
		cancel()
		if aerr != nil {
			close(m.gaveUp)
			go m.endLater(err)
			return m.hung(err)
		}
		late, cancel = context.WithTimeout(context.WithoutCancel(ctx), grace)
		defer cancel()
	}
	if derr := m.closeDestination(late); derr != nil {
		errs = append(errs, derr)
	}
	if err != nil && m.canPour() {
		late, cancel := m.orGrace(ctx, saving)
		m.pour(late)
		cancel()
	}
	close(m.gaveUp)
	m.mail.post(func() {
		m.leave = err
		m.enter(leaving)
	})
	late, cancel := m.orGrace(ctx, grace)
	defer cancel()
	select {
	case <-m.ended:
	case <-late.Done():
		return m.hung(cmp.Or(err, late.Err()))
	}
	errs = append(errs, m.leftErr)
	for _, d := range []*disk{&m.disk, &m.dead.work} {
		select {
		case <-d.rest():
		case <-late.Done():
			if serr := d.stuck(); serr != nil {
				errs = append(errs, fmt.Errorf("mover: a goroutine was left behind: %w", serr))
			}
		}
	}
	return errors.Join(errs...)
}

// endLater lets go of everything once the mover's goroutine comes back: it may only have had no
// processor for too long, and while it has ring and spill nobody else can take them over. The
// destination goes first, so that it does not deliver what they already have.
func (m *Mover) endLater(err error) {
	_ = m.mail.ask(context.Background(), func() {})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	m.report(m.closeDestination(ctx))
	m.mail.post(func() { m.leave = err; m.enter(leaving) })
}

// hung is what Close returns when the mover's goroutine does not come back.
func (m *Mover) hung(err error) error {
	s := m.Stats()
	return errors.Join(&LeftError{Events: s.Held, Bytes: s.HeldBytes, Where: m.left(), Err: err},
		errors.New("mover: its goroutine did not answer, for the machine is busy or it hangs in a call of the destination, of Delivered or of Diagnostics, and was left behind"))
}

// orGrace is ctx, but gives it at least a little time.
func (m *Mover) orGrace(ctx context.Context, grace time.Duration) (context.Context, context.CancelFunc) {
	if d, ok := ctx.Deadline(); ctx.Err() == nil && (!ok || time.Until(d) > grace) {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(context.WithoutCancel(ctx), grace)
}

// canPour says that what is in plain memory can be saved on disk.
func (m *Mover) canPour() bool { return m.cfg.Dir != "" && m.rings.cur.Load().r.Path() == "" }

// untilPour leaves time for that.
func (m *Mover) untilPour(ctx context.Context) (context.Context, context.CancelFunc) {
	d, ok := ctx.Deadline()
	if !ok || !m.canPour() {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, d.Add(-min(time.Until(d)/2, time.Second)))
}

// closeDestination has it give up what is pending.
func (m *Mover) closeDestination(ctx context.Context) error {
	done := make(chan error, 1)
	go func() { done <- m.cfg.Destination.Close(ctx) }()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	end := ctx.Done()
	for {
		select {
		case err := <-done:
			return err
		case <-end:
			timer.Reset(grace) // it should be about to return
			end = nil
		case <-timer.C:
			if end == nil {
				return errors.New("mover: the destination's Close hangs and was left behind")
			}
		}
	}
}

// pour puts everything that is not delivered into the spill.
func (m *Mover) pour(ctx context.Context) {
	poured := make(chan struct{})
	m.mail.post(func() {
		m.enter(pouring)
		m.poured = poured
		m.refused = false
		given := m.given
		m.given = nil
		var mine []*flight
		for _, f := range given {
			if f.from == nil && f.src.own {
				f.flying = false
				mine = append(mine, f)
			} else {
				m.given = append(m.given, f)
			}
		}
		if len(mine) == 0 {
			return
		}
		all := *m.rings.all.Load()
		slices.SortStableFunc(mine, func(a, b *flight) int { // as they were cut, however the destination gave them up
			return cmp.Or(cmp.Compare(slices.Index(all, a.src), slices.Index(all, b.src)), cmp.Compare(a.first, b.first), cmp.Compare(a.lane, b.lane))
		})
		// They are older than what has been spilled, or is being spilled: where there is such, they
		// get a spill of their own, dated before it.
		if m.handing > 0 || m.spill != nil && m.spill.entries.len() > 0 {
			m.handBefore(mine)
			return
		}
		mine = append(mine, m.stuck...)
		m.stuck = nil
		m.hand(mine)
	})
	select {
	case <-poured:
	case <-ctx.Done():
	}
}

// pourOn goes on with it, and says when it is done or cannot be.
func (m *Mover) pourOn() {
	if m.poured == nil || m.handing > 0 {
		return
	}
	if m.refused && m.lasting || len(m.stuck) == 0 && m.rings.full() == nil {
		close(m.poured)
		m.poured = nil
	}
}

// handBefore writes chunks to a spill that is read before the own one.
func (m *Mover) handBefore(flights []*flight) {
	m.handing++
	chunks := make([]forward.Chunk, len(flights))
	for i, f := range flights {
		f.leaveSpill()
		chunks[i] = f.chunk
	}
	m.disk.do("writing to "+m.cfg.Dir, func() {
		made := time.Now()
		if m.shelf.spill != nil {
			made = m.shelf.spill.Made.Add(-1)
		}
		sp, err := m.shelf.folder.Make(m.rings.path, made)
		n := 0
		if err == nil {
			n, err = sp.Write(chunks)
			err = errors.Join(err, sp.Close())
		}
		m.mail.post(func() {
			m.handing--
			m.report(err)
			for _, f := range flights[:n] {
				m.unmark(f)
				m.count.spilled.Add(uint64(f.chunk.Events))
			}
			m.given = append(m.given, flights[n:]...)
			if n > 0 {
				m.saved = append(m.saved, sp.Dir)
			}
		})
	})
}

// end lets go of everything the mover's goroutine has. It is the last that this does.
func (m *Mover) end() {
	m.mail.close()
	m.inbox.Lock()
	m.inbox.closed = true
	m.inbox.Unlock()
	m.collect()
	m.count.spilling.Store(m.holds())
	m.answer()
	m.state.close()
	m.timer.Stop()
	m.leaveRuns(append(slices.Clone(m.given), m.stuck...))

	for _, sp := range m.spills() {
		if sp.gone.Load() {
			sp.giveUp(m, 0) // what was read of it, and is only in our memory
		}
	}
	var errs []error
	where := m.saved
	for _, s := range m.adopted {
		where = append(where, s.r.Path())
		errs = append(errs, s.close(true))
	}
	m.rings.mu.Lock()
	for _, s := range *m.rings.all.Load() {
		s.bury()
		path := s.r.Path()
		done := !s.fill() && s.out == 0
		switch {
		case done && path != "" && m.ownsState():
			errs = append(errs, s.close(true)) // the state in it is for what is left
		case done:
			errs = append(errs, s.close(false))
		case path != "":
			where = append(where, path)
			errs = append(errs, s.close(true))
		default:
			errs = append(errs, s.close(false))
			m.giveUp(s)
		}
	}
	m.rings.mu.Unlock()
	for _, sp := range m.spills() {
		if sp.gone.Load() {
			continue
		}
		if sp.own && sp.empty() && m.handing == 0 {
			m.remove(sp)
			m.count.disk.Store(0)
			continue
		}
		where = append(where, sp.Dir)
		sp.advance(m)
		m.disk.do("closing "+sp.Dir, func() {
			if err := sp.Close(); err != nil {
				m.report(fmt.Errorf("closing a spill: %w", err))
			}
		})
	}
	if m.handing > 0 {
		m.disk.do("closing a spill", func() {
			if sp := m.shelf.spill; sp != nil {
				_ = sp.Close() // what is in it is covered by marks as well, or was counted as held
			}
		})
	}
	if st := m.Stats(); st.Held > 0 || st.Drops[Given] > 0 {
		left := &LeftError{Events: st.Held, Bytes: st.HeldBytes, Where: where, Lost: st.Drops[Given], Err: cmp.Or(m.leave, errUnread)}
		if left.Events == 0 {
			left.Events, left.Bytes, left.Where, left.Lost = left.Lost, m.givenUp, nil, 0
		}
		errs = append(errs, left)
	}
	if m.dead.used.Load() {
		m.dead.work.do("closing the dead letters", m.dead.close)
	}
	m.leftErr = errors.Join(errs...)
	close(m.ended)
}

// ownsState says that the ring has a state that counts for what is left in a spill: its cursor has
// an older one, or none.
func (m *Mover) ownsState() bool {
	return m.state.some() && slices.ContainsFunc(m.spills(), func(sp *backlog) bool { return sp.entries.len() > 0 })
}

// giveUp counts what is left in a ring of plain memory, and what was cut from it and is in no
// spill.
func (m *Mover) giveUp(s *source) {
	t := s.totals()
	n, b := t.events-s.taken.Load(), t.bytes-s.bytes.Load()
	s.taken.Add(n)
	s.bytes.Add(b)
	for _, list := range [][]*flight{m.given, m.stuck} {
		for _, f := range list {
			if f.src == s && f.from == nil {
				n += uint64(f.chunk.Events)
				b += f.bytes
				m.count.cut.sub(uint64(f.chunk.Events), f.bytes)
			}
		}
	}
	m.count.drops[Given].Add(n)
	m.givenUp += int64(b)
}

// spills are all that are open.
func (m *Mover) spills() []*backlog {
	var all []*backlog
	for _, q := range m.queue {
		if sp, ok := q.(*backlog); ok {
			all = append(all, sp)
		}
	}
	all = append(all, m.stranded...)
	if m.spill != nil {
		all = append(all, m.spill)
	}
	return all
}

// left is where things are when nobody can look more closely.
func (m *Mover) left() []string {
	var where []string
	if path := m.rings.path; path != "" {
		where = append(where, path)
		if m.cfg.Dir != "" {
			where = append(where, filepath.Join(m.cfg.Dir, filepath.Base(path)))
		}
	}
	return where
}
