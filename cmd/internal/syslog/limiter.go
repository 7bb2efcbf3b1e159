// SPDX-License-Identifier: Apache-2.0

package syslog

import (
	"sync"
	"time"

	"github.com/spillwaylog/spillway/internal/codes"
)

// A limiter lets one message of a kind through in each interval.
type limiter struct {
	mu    sync.Mutex
	kinds map[codes.Code]*allowance
}

type allowance struct {
	next time.Time
	out  int // messages that were left out since
}

// warnEvery is how often one input warns of one kind of error.
const warnEvery = 10 * time.Second

// take says whether a message may be written, and how many were left out before it.
func (l *limiter) take(code codes.Code) (out int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.kinds[code]
	if a == nil {
		a = &allowance{}
		l.kinds[code] = a
	}
	now := time.Now()
	if now.Before(a.next) {
		a.out++
		return 0, false
	}
	out, a.next, a.out = a.out, now.Add(warnEvery), 0
	return out, true
}

func withLeftOut(n int, args ...any) []any {
	if n > 0 {
		args = append(args, "left_out", n)
	}
	return args
}
