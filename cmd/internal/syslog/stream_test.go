// SPDX-License-Identifier: Apache-2.0

package syslog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
)

// TestCrowd: where there are no more places, the connection that was silent for the longest time is
// closed for a new one, and what it had sent is stored.
func TestCrowd(t *testing.T) {
	to := &sink{}
	in, log, stop := run(t, "syslog+tcp://127.0.0.1:0?max_connections=2", to)
	dial := func() net.Conn {
		c, err := net.Dial("tcp", in.Addr().String())
		must(t, err)
		t.Cleanup(func() { c.Close() })
		return c
	}
	silent := dial()
	_, err := io.WriteString(silent, "<13>half a message")
	must(t, err)
	eventually(t, "the first is read", func() bool { return in.bytes.Load() > 0 })
	for i := range 3 {
		c := dial()
		_, err := fmt.Fprintf(c, "<13>message %d\n", i)
		must(t, err)
		eventually(t, "the message of a new connection is stored", func() bool {
			for _, e := range to.events() {
				if strings.Contains(e.line, fmt.Sprintf("message %d", i)) {
					return true
				}
			}
			return false
		})
	}
	if _, err := silent.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the silent connection: %v", err)
	}
	_ = stop() // the end of its context
	if !strings.Contains(log.String(), "a silent connection is closed") {
		t.Errorf("nobody is told: %s", log)
	}
	if n := len(to.events()); n != 4 {
		t.Errorf("%d events, want 4: %v", n, to.events())
	}
}

// TestCrowdStoresNothing: while nothing is stored, connections that were to make room do not become
// more and more.
func TestCrowdStoresNothing(t *testing.T) {
	const places, count = 2, 60
	to := &sink{gate: make(chan struct{})}
	in, _, stop := run(t, fmt.Sprintf("syslog+tcp://127.0.0.1:0?max_connections=%d", places), to)
	for i := range count {
		c, err := net.Dial("tcp", in.Addr().String())
		must(t, err)
		defer c.Close()
		_, err = fmt.Fprintf(c, "<13>message %d\n", i)
		must(t, err)
		if i < 2*places {
			eventually(t, "it is read",
				func() bool { return in.bytes.Load() >= int64(i+1)*int64(len("<13>message 0\n")) })
		}
	}
	if n := in.open.Load(); n > 2*places {
		t.Errorf("%d connections are open", n)
	}
	close(to.gate)
	_ = stop() // the end of its context
}

// TestEndTakesWhatLies: what lies in the sockets when the input is told to end is stored.
func TestEndTakesWhatLies(t *testing.T) {
	for scheme, count := range map[string]int{"tcp": 2000, "udp": 200} { // so many find room in any receive buffer
		t.Run(scheme, func(t *testing.T) {
			to := &sink{gate: make(chan struct{})}
			in, _, stop := run(t, "syslog+"+scheme+"://127.0.0.1:0", to)
			c, err := net.Dial(scheme, in.Addr().String())
			must(t, err)
			defer c.Close()
			for i := range count {
				_, err := fmt.Fprintf(c, "<13>message %d\n", i)
				must(t, err)
				if i == 0 { // the others come while this one is being stored
					eventually(t, "the first is read", func() bool { return in.bytes.Load() > 0 })
				}
			}
			ended := make(chan error)
			go func() { ended <- stop() }()
			eventually(t, "it is told to end", in.hasEnded)
			close(to.gate)
			if err := <-ended; !errors.Is(err, context.Canceled) && err != nil {
				t.Error(err)
			}
			if n := len(to.events()); n != count {
				t.Errorf("%d events, want %d", n, count)
			}
		})
	}
}
