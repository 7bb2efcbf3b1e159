// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spillwaylog/spillway/forward"
)

// A sink is the way into the store for an input of another package. What comes by it is looked at:
// outputs rely on it.
type sink struct {
	store       *store
	account     *account
	taking      context.Context // ends when it may put nothing in any more
	index       uint64          // of the input
	mark        *bookmark
	found       []byte // the position when the input was opened
	maxUnpacked int64  // bytes of the entries of one chunk

	together int64 // bytes of the entries of chunks that become one
}

// errTakesNothing is the answer of a sink when the collector's time to drain is over.
var errTakesNothing = errors.New("collector: it ends, and takes nothing any more")

// Position implements Sink.
func (s *sink) Position() []byte { return s.found }

// Store implements Sink.
func (s *sink) Store(ctx context.Context, chunks []*forward.Chunk, position []byte) (func(context.Context) error,
	error,
) {
	from := originOf(forward.SenderOf(ctx))
	from.conn = s.conn(from.conn)
	own := make([]forward.Chunk, len(chunks))
	group := make([]*forward.Chunk, 0, len(chunks))
	for i, c := range chunks {
		if err := s.check(c); err != nil {
			s.account.malformed.Add(1)
			return nil, fmt.Errorf("chunk %d of %d: %w", i, len(chunks), err)
		}
		if c.Events == 0 {
			continue
		}
		if position != nil && len(group) > 0 && (c.ID == nil) != (group[0].ID == nil) {
			return nil, fmt.Errorf("chunk %d of %d: in a group with a position all chunks have an id or none", i,
				len(chunks))
		}
		// Only what is checked: of what else it may say nothing is known.
		own[i] = forward.Chunk{
			Tag: c.Tag, ID: c.ID, IDBin: c.IDBin, UniqueID: c.UniqueID, Entries: c.Entries, Events: c.Events,
		}
		if c.Sent != nil {
			own[i].Sent = &forward.Sent{Tag: c.Sent.Tag, Entries: c.Sent.Entries}
		}
		whole := &own[i]
		left, err := s.large(ctx, from, whole)
		if err != nil {
			return nil, cause(ctx, err)
		}
		if left.Events > 0 {
			group = append(group, left)
		}
	}
	if len(position) > MaxPosition {
		return nil, fmt.Errorf("a position of %d bytes; it may have %d", len(position), MaxPosition)
	}
	if s.taking.Err() != nil {
		return nil, errTakesNothing
	}
	ctx, end := s.until(ctx)
	defer end()
	if position != nil {
		select {
		case s.mark.turn <- struct{}{}:
			defer func() { <-s.mark.turn }()
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		if err := s.store.persist(ctx, s.mark.all.hold); err != nil {
			return nil, cause(ctx, err)
		}
	}
	if position != nil {
		group = s.join(group)
	}
	for _, c := range group {
		s.account.arrived.add(c)
	}
	last, _, err := s.store.take(ctx, s.account, from, group, s.mark, position)
	if err != nil {
		return nil, cause(ctx, err)
	}
	return func(ctx context.Context) error {
		ctx, end := s.until(ctx)
		defer end()
		if wait := s.store.waiting(last); wait != nil {
			return cause(ctx, wait(ctx))
		}
		return nil
	}, nil
}

// synced implements syncedSink.
func (s *sink) synced(ctx context.Context) error {
	ctx, end := s.until(ctx)
	defer end()
	return cause(ctx, s.store.sync(ctx, s.store.journal.Stats().Written))
}

// large returns a chunk without the entries that are too large, each of which it sets aside.
func (s *sink) large(ctx context.Context, from origin, c *forward.Chunk) (*forward.Chunk, error) {
	limit := s.store.maxEvent
	if limit <= 0 || int64(len(c.Entries)) <= limit {
		return c, nil
	}
	left := *c
	left.Entries = nil
	if left.Sent = nil; c.Sent != nil {
		left.Sent = &forward.Sent{Tag: c.Sent.Tag}
	}
	r := forward.ReadEntries(c.Entries)
	for found := 0; ; {
		e, ok := r.Next()
		if !ok {
			break
		}
		if int64(len(e.Raw)) <= limit {
			left.Entries = append(left.Entries, e.Raw...)
			continue
		}
		left.Events--
		err := s.store.setAsideFrom(ctx, s.account, from,
			&forward.LargeEvent{
				Chunk: c, Index: found, Entry: e.Raw, Size: int64(len(e.Raw)), Sec: e.Sec,
				Nsec: e.Nsec,
			})
		if err != nil {
			return nil, err
		}
		s.account.oversize.Add(1)
		s.store.reporter.peer(forward.PeerError{
			Kind: forward.PeerTooLargeEvent, Action: forward.ActionKeep, Tag: c.Tag,
			Sender: forward.SenderOf(ctx),
			Err:    fmt.Errorf("an event of %d bytes, the limit is %d: set aside", len(e.Raw), limit),
		}, s.account.name)
		found++
	}
	if left.Events == c.Events {
		return c, nil
	}
	return &left, nil
}

// join makes one chunk of those with the same tag that follow one another, up to a size. The
// records of a group reach the disk one after another, so a crash may leave the first of them
// without the position; one record is there or not. Chunks with ids stay: those that come again are
// known.
func (s *sink) join(group []*forward.Chunk) []*forward.Chunk {
	joined := group[:0]
	var grown *forward.Chunk // the last one, if its entries are no longer lent
	for _, c := range group {
		if n := len(joined); n > 0 {
			to := joined[n-1]
			if c.ID == nil && to.ID == nil && c.Tag == to.Tag && sentTag(c) == sentTag(to) &&
				int64(len(to.Entries)+len(c.Entries)) <= s.together {
				if to != grown {
					to.Entries, grown = slices.Clip(to.Entries), to // what was lent is not written to
				}
				to.Entries = append(to.Entries, c.Entries...)
				to.Events += c.Events
				if to.Sent != nil {
					to.Sent = &forward.Sent{Tag: to.Sent.Tag}
				}
				continue
			}
		}
		joined = append(joined, c)
	}
	return joined
}

// sentTag is the tag that a chunk was sent with, where that is another one.
func sentTag(c *forward.Chunk) string {
	if c.Sent == nil {
		return ""
	}
	return c.Sent.Tag
}

// conn makes a connection's number that no connection of another input has.
func (s *sink) conn(of uint64) uint64 { return 1<<31 | (of^s.index<<23)&(1<<31-1) }

// check looks at what a chunk says of itself.
func (s *sink) check(c *forward.Chunk) error {
	switch {
	case c == nil:
		return fmt.Errorf("%w: there is none", forward.ErrMalformed)
	case len(c.Tag) > forward.MaxTag || len(sentTag(c)) > forward.MaxTag:
		return fmt.Errorf("%w: the tag has %d bytes; it may have %d", forward.ErrMalformed,
			max(len(c.Tag), len(sentTag(c))), forward.MaxTag)
	case int64(len(c.Entries)) > s.maxUnpacked:
		return fmt.Errorf("%w: %d bytes of entries; there may be %d", forward.ErrMalformed, len(c.Entries),
			s.maxUnpacked)
	}
	entries := forward.ReadEntries(c.Entries)
	n := 0
	for ; ; n++ {
		if _, ok := entries.Next(); !ok {
			break
		}
	}
	switch {
	case entries.Err() != nil:
		return entries.Err()
	case n != c.Events:
		return fmt.Errorf("%w: %d entries, and it says %d", forward.ErrMalformed, n, c.Events)
	}
	return nil
}

// until is ctx, ended when the input may put nothing in any more.
func (s *sink) until(ctx context.Context) (_ context.Context, end func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(s.taking, func() { cancel(errTakesNothing) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}

// cause is why ctx has ended, where err says no more than that it has.
func cause(ctx context.Context, err error) error {
	if err != nil && errors.Is(err, ctx.Err()) {
		return context.Cause(ctx)
	}
	return err
}
