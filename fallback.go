// SPDX-License-Identifier: Apache-2.0

package spillway

import (
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/lines"
)

// An ErrorHandler is offered chunks that cannot be delivered.
//
// It is offered each chunk once when the destination's circuit breaker opens, and new chunks while
// it stays open; one that was written to a host and not acked only after failover_after. nil means
// that it took the chunk: its events count as handed over, and are not sent any more. With an error
// they stay where they are, and are offered again after the next failed attempt. Calls come one at
// a time, on a goroutine of their own. The chunk is the handler's to keep; its entries are read
// with forward.ReadEntries. A panic counts as an error.
type ErrorHandler interface {
	HandleError(err error, c *forward.Chunk) error
}

// ErrorHandlerFunc is a function as an ErrorHandler.
type ErrorHandlerFunc func(err error, c *forward.Chunk) error

// HandleError calls f.
func (f ErrorHandlerFunc) HandleError(err error, c *forward.Chunk) error { return f(err, c) }

// FallbackTo returns a handler that posts each event into another logger, with its own time and
// tag.
//
// When the other logger refuses an event, the chunk stays pending from there on: the next offer
// goes on with the event that was refused. Should the chunk's own destination come back in between,
// or this process die, then the events before that one are in both places. (An event is in the
// other logger when that has accepted it, so a crash after the last event of a chunk and before it
// is counted repeats the chunk.)
//
// Open refuses a fallback that leads to the destination itself, also over others: ErrCycle. Close
// the other logger after this one.
func FallbackTo(l *Logger) ErrorHandler { return &fallback{to: l, posted: map[string]int{}} }

type fallback struct {
	to     *Logger
	mu     sync.Mutex
	posted map[string]int // how many events of a chunk the other logger took before it refused one; by id
}

// maxPosted bounds posted. Chunks beyond begin anew.
const maxPosted = 1 << 10

func (f *fallback) HandleError(_ error, c *forward.Chunk) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.to.off() {
		return nil // Discard takes all
	}
	id, done := string(c.ID), 0
	done = f.posted[id]
	n := 0
	r := forward.ReadEntries(c.Entries)
	for e, ok := r.Next(); ok; e, ok = r.Next() {
		n++
		if n <= done {
			continue
		}
		if err := f.to.postRaw(c.Tag, entryNanos(&e), e.Record); err != nil && !errors.Is(err, ErrAccepted) {
			if id != "" && len(f.posted) < maxPosted {
				f.posted[id] = n - 1
			}
			return fmt.Errorf("spillway: fallback: %w", err)
		}
	}
	delete(f.posted, id)
	return r.Err()
}

// entryNanos returns the time of an entry in Unix nanoseconds, 0 for none.
func entryNanos(e *forward.Entry) int64 {
	if e.Sec == 0 && e.Nsec == 0 {
		return 0
	}
	return nanos(e.Time())
}

// checkFallback follows the fallbacks from h on, and returns an error if they lead to place, or in
// a circle.
func checkFallback(h ErrorHandler, place string) (*core, error) {
	f, ok := h.(*fallback)
	if !ok {
		return nil, nil
	}
	if f.to == nil {
		return nil, errors.New("spillway: FallbackTo(nil): a fallback that drops everything is FallbackTo(Discard())")
	}
	seen := map[*core]bool{}
	for c := f.to.c; c != nil; c = c.fallback {
		if c.place == place || seen[c] {
			return nil, fmt.Errorf("%w: to %s", ErrCycle, c.place)
		}
		seen[c] = true
	}
	return f.to.c, nil
}

// FallbackJSON returns a handler that writes each event as a line of JSON, as file destinations do:
//
//	{"time":"2026-11-21T02:03:04.123456789Z","tag":"app","level":"INFO","msg":"order placed","id":42}
//
// A chunk is one Write. With an error of it the chunk stays pending.
func FallbackJSON(w io.Writer) ErrorHandler {
	f := &fallbackJSON{w: w}
	f.lines, _ = lines.NewEncoder(&lines.Options{OmitZero: true}) // the default keys are usable
	return f
}

type fallbackJSON struct {
	mu    sync.Mutex
	w     io.Writer
	lines *lines.Encoder
	buf   []byte
}

func (f *fallbackJSON) HandleError(_ error, c *forward.Chunk) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	b := f.buf[:0]
	r := forward.ReadEntries(c.Entries)
	for e, ok := r.Next(); ok; e, ok = r.Next() {
		b = f.lines.AppendLine(b, c.Tag, e)
	}
	if cap(b) <= maxPooled {
		f.buf = b[:0]
	}
	if err := r.Err(); err != nil {
		return err
	}
	n, err := f.w.Write(b)
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	return err
}
