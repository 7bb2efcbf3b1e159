// SPDX-License-Identifier: Apache-2.0

package fluent

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/spillwaylog/spillway"
)

// TestLimitAndLeftovers: what an earlier logger left does not count, also when it is found only
// after New.
func TestLimitAndLeftovers(t *testing.T) {
	o := &spillway.Options{
		Dir: t.TempDir(), Shm: t.TempDir(), RingSize: 1 << 20,
		Dial: func(context.Context, string, string) (net.Conn, error) {
			return nil, errors.New("no server")
		}, Diagnostics: func(error) {},
	}
	config := Config{Async: true, ForceStopAsyncSend: true, RetryWait: 1, MaxRetryWait: 20}
	f, err := NewWith(config, o)
	if err != nil {
		t.Fatal(err)
	}
	const left, limit = 100, 10
	for range left {
		if err := f.Post("tag", map[string]string{"a": "b"}); err != nil {
			t.Fatal(err)
		}
	}
	var e *spillway.UndeliveredError
	if err := f.Close(); !errors.As(err, &e) || e.Events != left {
		t.Fatal(err)
	}
	config.BufferLimit = limit
	if f, err = NewWith(config, o); err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // nobody takes what is left
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for until := time.Now().Add(4 * time.Minute); f.async.logger.Stats().Adopted.Events < left; <-tick.C {
		if time.Now().After(until) {
			t.Fatal("nothing was found")
		}
	}
	for n := range limit {
		if err := f.Post("tag", map[string]string{"a": "b"}); err != nil {
			t.Fatalf("event %d: %v", n, err)
		}
	}
	if err := f.Post("tag", map[string]string{"a": "b"}); !errors.Is(err, spillway.ErrFull) {
		t.Error(err)
	}
}
