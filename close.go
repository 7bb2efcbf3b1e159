// SPDX-License-Identifier: Apache-2.0

package spillway

import (
	"context"
	"log/slog"
	"os"
	"runtime/debug"
	"sync"
	"time"
)

// lastWords is how long Fatal and Recover wait for the destination.
const lastWords = 5 * time.Second

// Flush returns when all that was logged before is delivered, handed over or dropped, or when ctx
// ends, with its error. It does not wait for the beginnings of lines that a Writer holds.
func (l *Logger) Flush(ctx context.Context) error {
	if l.off() {
		return nil
	}
	if ctx == nil {
		ctx = context.Background()
	}
	return plainly(l.c.to.Flush(ctx))
}

// ending is the one close of a logger.
type ending struct {
	mu   sync.Mutex
	done chan struct{}
}

// finished returns the channel that is closed when Close is done, and whether this call is the one
// to do it.
func (e *ending) finished() (done chan struct{}, first bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.done == nil {
		e.done = make(chan struct{})
		return e.done, true
	}
	return e.done, false
}

// Close delivers what is held, until ctx ends, and lets go of everything; no goroutine of the
// logger is left. Give ctx a deadline: without one Close waits for as long as the destination is
// down. When something could not be delivered the error wraps an *UndeliveredError, which says how
// much, and where the next process finds it. It closes all loggers that With made of the same one:
// they answer ErrClosed then. Another Close waits for the first one and returns nil.
func (l *Logger) Close(ctx context.Context) error {
	if l.off() {
		return nil
	}
	if ctx == nil {
		ctx = context.Background()
	}
	c := l.c
	done, first := c.ending.finished()
	if !first {
		select {
		case <-done:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	defer close(done)
	c.postRests(ctx)
	err := plainly(c.to.Close(ctx))
	c.breakers.close()
	c.diagnostics.close(ctx)
	return err
}

// postRests posts the beginnings of lines that writers hold, while it leaves most of the time to
// the delivery.
func (c *core) postRests(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	c.rests.post(ctx)
}

// bounded is a context for last words, and one for logging them, which takes as long as delivering
// with WaitDelivered.
func (c *core) bounded() (all, logging context.Context, cancel context.CancelFunc) {
	all, cancelAll := context.WithTimeout(context.Background(), c.lastWords)
	logging, cancelLogging := context.WithTimeout(all, c.lastWords/2)
	return all, logging, func() {
		cancelLogging()
		cancelAll()
	}
}

// Fatal logs at LevelFatal, closes the logger, for which it takes at most 5 s, and ends the process
// with exit code 1, without running deferred functions. What is not delivered by then stays for the
// next process.
func (l *Logger) Fatal(msg string, attrs ...slog.Attr) {
	exit := os.Exit //nolint:forbidigo // what Fatal is for
	if !l.off() {
		exit = l.c.exit
		ctx, logging, cancel := l.c.bounded()
		if l.Enabled(LevelFatal) {
			l.log(logging, LevelFatal, msg, attrs)
		}
		_ = l.Close(ctx) // there is nobody left to tell
		cancel()
	}
	exit(1)
}

// Recover logs a panic, with its value and the stack, at LevelFatal, flushes, for which it takes at
// most 5 s, and panics again with the same value. It is to be deferred itself, in each goroutine
// whose panics are to be logged:
//
//	defer log.Recover()
func (l *Logger) Recover() {
	if l.off() { // the panic goes on as if nobody had looked
		return
	}
	v := recover()
	if v == nil {
		return
	}
	ctx, logging, cancel := l.c.bounded()
	l.Log(logging, LevelFatal, "panic", slog.Any("panic", v), slog.String("stack", string(debug.Stack())))
	_ = l.Flush(ctx) // the panic says more than its error
	cancel()
	panic(v)
}
