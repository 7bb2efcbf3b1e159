// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/codes"
	"github.com/spillwaylog/spillway/journal"
)

// reporter writes the collector's own messages. What hostile or broken peers
// can cause at will is bounded a code: a burst, then one line a second, which
// says how many were left out. What goes wrong on this side again and again in
// the same way is told once a minute.
type reporter struct {
	log *slog.Logger

	mu    sync.Mutex
	codes map[codes.Code]*allowance
	now   func() time.Time
}

const (
	reportBurst = 20
	reportEvery = time.Second
)

// allowance is how many lines of one code may be written, and how many were
// not.
type allowance struct {
	left    int
	since   time.Time
	leftOut int

	text string // of the last error, when it was told, and how often it came since
	told time.Time
	same int
}

func newReporter(log *slog.Logger) *reporter {
	return &reporter{log: log, codes: make(map[codes.Code]*allowance), now: time.Now}
}

// take says whether a line of this code may be written now, and how many were
// left out before it.
func (r *reporter) take(code codes.Code) (leftOut int, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	a := r.allowanceLocked(code, now)
	if more := int(now.Sub(a.since) / reportEvery); more > 0 {
		a.left = min(reportBurst, a.left+more)
		a.since = now
	}
	if a.left == 0 {
		a.leftOut++
		return 0, false
	}
	a.left--
	leftOut, a.leftOut = a.leftOut, 0
	return leftOut, true
}

// report tells of something wrong on this side, under the code of the error if it has one.
func (r *reporter) report(code codes.Code, text string, err error) {
	var damage *journal.CorruptError
	if errors.As(err, &damage) {
		code = codes.JournalDamaged
	}
	code = codes.Of(err, code)
	same, again := r.again(code, err.Error())
	if again {
		return
	}
	if leftOut, ok := r.take(code); ok {
		code.Error(r.log, text, withLeftOut(leftOut+same, "error", err)...)
	}
}

// again says whether an error was told within the last minute, and if not, how often it came since
// it was told last.
func (r *reporter) again(code codes.Code, text string) (same int, again bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	a := r.allowanceLocked(code, now)
	if a.text == text && now.Sub(a.told) < remindEvery {
		a.same++
		return 0, true
	}
	if a.text == text {
		same = a.same
	}
	a.text, a.told, a.same = text, now, 0
	return same, false
}

func (r *reporter) allowanceLocked(code codes.Code, now time.Time) *allowance {
	a := r.codes[code]
	if a == nil {
		a = &allowance{left: reportBurst, since: now}
		r.codes[code] = a
	}
	return a
}

// failure reports what does not work and is tried again; args say what it is.
func (r *reporter) failure(code codes.Code, text string, f Failure, args ...any) {
	if leftOut, ok := r.take(code); ok {
		args = append(args, "error", f.Err, "since", f.Since.UTC().Format(time.RFC3339), "tries", f.Tries,
			"next_try_in", f.Pause)
		code.Error(r.log, text, withLeftOut(leftOut, args...)...)
	}
}

// recovered reports that a failure is over.
func (r *reporter) recovered(code codes.Code, text string, f Failure, args ...any) {
	if leftOut, ok := r.take(code); ok {
		code.Info(r.log, text, withLeftOut(leftOut,
			append(args, "after", time.Since(f.Since).Round(time.Millisecond), "tries", f.Tries)...)...)
	}
}

// peer reports bad input, and the input that it came by.
func (r *reporter) peer(t forward.PeerError, input string) {
	code := codes.Peer(t.Kind)
	if leftOut, ok := r.take(code); ok {
		code.Warn(r.log, "bad input", withLeftOut(leftOut,
			"peer", t.Sender.Address(), "input", input, "kind", t.Kind.String(), "fate", t.Action.String(), "error",
			t.Err)...)
	}
}

// connection reports a connection that begins or has ended.
func (r *reporter) connection(s *forward.Sender, input string, open bool) {
	code, text := codes.ConnectionClosed, "connection closed"
	if open {
		code, text = codes.ConnectionOpened, "connection opened"
	}
	if leftOut, ok := r.take(code); ok {
		code.Debug(r.log, text, withLeftOut(leftOut, "peer", s.Address(), "input", input)...)
	}
}

func withLeftOut(n int, args ...any) []any {
	if n > 0 {
		args = append(args, "left_out", n)
	}
	return args
}

// run tells now and then of what was left out and not told since.
func (r *reporter) run(ctx context.Context) {
	tick := time.NewTicker(10 * time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			r.tellLeftOut()
			return
		case <-tick.C:
			r.tellLeftOut()
		}
	}
}

func (r *reporter) tellLeftOut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for code, a := range r.codes {
		if a.leftOut > 0 {
			codes.MessagesLeftOut.Warn(r.log, "lines left out", "of", string(code), "left_out", a.leftOut)
			a.leftOut = 0
		}
	}
}
