// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"time"
)

// reachEvery is how often it is told that a server still cannot be reached.
const reachEvery = 10 * time.Second

// A reach tells, while something is to be sent, whether the server can be reached: at once that it
// cannot, then from time to time that it still cannot, and that it can again.
type reach struct {
	w       io.Writer
	url     string // without secrets
	address string // of the client, which begins its errors with it

	mu     sync.Mutex
	timer  *time.Timer // nil: nothing is to be sent
	limit  time.Duration
	began  time.Time // when something was to be sent
	up     bool
	reason error // of the last failure
	failed bool  // it was told that it cannot be reached
	told   bool  // and not yet that it can
}

// begin says that something is to be sent, for at most limit. end says that it is over.
func (r *reach) begin(limit time.Duration) (end func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.limit, r.began, r.reason, r.failed, r.told = limit, time.Now(), nil, false, false
	r.timer = time.AfterFunc(reachEvery, r.tick)
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.timer.Stop()
		r.timer = nil
	}
}

// changed is forward.Client.Changed.
func (r *reach) changed(up bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.up = up
	if r.timer == nil {
		return
	}
	switch {
	case up && r.told:
		r.say("connected after %v", r.passed())
		r.told = false
	case err != nil:
		r.reason = err
		if !r.failed {
			r.fail("trying again for %v", r.limit-r.passed().Truncate(time.Second))
			r.timer.Reset(reachEvery)
		}
	}
}

// tick tells that there is still no connection.
func (r *reach) tick() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.timer == nil {
		return
	}
	if !r.up {
		r.fail("still trying after %v", r.passed())
	}
	r.timer.Reset(reachEvery)
}

// passed is how long something has been to be sent.
func (r *reach) passed() time.Duration {
	d := time.Since(r.began)
	if d >= time.Second {
		return d.Round(time.Second)
	}
	return d.Round(time.Millisecond)
}

// fail tells why there is no connection.
func (r *reach) fail(format string, args ...any) {
	r.failed, r.told = true, true
	reason := "no connection yet"
	if r.reason != nil {
		reason = r.because()
	}
	r.say("%s; "+format, append([]any{reason}, args...)...)
}

// because is the reason without the address, which the URL says.
func (r *reach) because() string {
	var dial *net.OpError
	if errors.As(r.reason, &dial) && dial.Op == "dial" {
		var call *os.SyscallError
		if errors.As(dial.Err, &call) {
			return call.Err.Error()
		}
		return dial.Err.Error()
	}
	return strings.TrimPrefix(r.reason.Error(), "forward: "+r.address+": ")
}

func (r *reach) say(format string, args ...any) {
	fmt.Fprintf(r.w, "spillway: %s: %s\n", r.url, fmt.Sprintf(format, args...))
}
