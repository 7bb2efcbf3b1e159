// SPDX-License-Identifier: Apache-2.0

package fluent

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillwaylog/spillway"
)

// attemptsOf sends one message with a dial that fails, or whose connections break at the first
// write, and returns when the attempts were.
func attemptsOf(t *testing.T, breaks bool, config Config) (at []time.Duration, err error) {
	t.Helper()
	config.resolve()
	begin := time.Now()
	s := newSender(config, func(context.Context) (net.Conn, error) {
		at = append(at, time.Since(begin))
		if !breaks {
			return nil, errors.New("no server")
		}
		near, far := net.Pipe()
		return near, far.Close()
	})
	err = s.send([]byte("message"), "")
	s.close()
	return at, err
}

// TestRetriesPause: attempts to connect, and to write, have growing pauses between them.
func TestRetriesPause(t *testing.T) {
	config := Config{RetryWait: 1000, MaxRetryWait: 2000, MaxRetry: 5}
	const s = time.Second
	for _, tt := range []struct {
		breaks bool
		want   []time.Duration
		err    string
	}{
		{
			false,
			[]time.Duration{0, s, s * 5 / 2, s * 9 / 2, s * 13 / 2},
			"fluent#write: could not connect to fluentd after 5 retries: no server",
		},
		{true, []time.Duration{0, 0, s, s * 5 / 2, s * 9 / 2}, "fluent#write: failed to write after 5 attempts: "},
	} {
		synctest.Test(t, func(t *testing.T) {
			at, err := attemptsOf(t, tt.breaks, config)
			if !slices.Equal(at, tt.want) || err == nil || !strings.HasPrefix(err.Error(), tt.err) {
				t.Errorf("attempts at %v, want %v; %v", at, tt.want, err)
			}
		})
	}
}

// TestCallsShareAnAttempt: many calls that need a connection wait for one run of attempts, not one
// after the other for a run each.
func TestCallsShareAnAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := Config{RetryWait: 1000, MaxRetry: 3}
		config.resolve()
		dials := 0
		s := newSender(config, func(context.Context) (net.Conn, error) {
			dials++
			return nil, errors.New("no server")
		})
		done := make(chan error)
		for range 10 {
			go func() { done <- s.send([]byte("message"), "") }()
		}
		for range 10 {
			if err := <-done; err == nil {
				t.Error("sent")
			}
		}
		s.close()
		if dials != 3 {
			t.Errorf("%d attempts", dials)
		}
	})
}

// TestCloseWhileDialing has a connection made when Close has given up on all there were: it is not
// used, and Close returns.
func TestCloseWhileDialing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dialing, release := make(chan struct{}, 1), make(chan struct{})
		down := true
		f, err := NewWith(Config{RequestAck: true},
			&spillway.Options{Dial: func(context.Context, string, string) (net.Conn, error) {
				if down {
					down = false
					return nil, errors.New("down")
				}
				dialing <- struct{}{}
				<-release // whatever the context says
				here, there := net.Pipe()
				go func() { _, _ = io.Copy(io.Discard, there) }()
				return here, nil
			}})
		if err == nil {
			t.Fatal("connected")
		}
		posted, closed := make(chan error, 1), make(chan error, 1)
		go func() { posted <- f.Post("tag", map[string]string{"a": "b"}) }()
		<-dialing
		go func() { closed <- f.Close() }()
		<-time.After(2 * grace)
		close(release)
		if err := <-posted; !errors.Is(err, spillway.ErrClosed) {
			t.Error(err)
		}
		if err := <-closed; err != nil {
			t.Error(err)
		}
	})
}
