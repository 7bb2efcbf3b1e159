// SPDX-License-Identifier: Apache-2.0

package clients_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/fluent/fluent-logger-golang/fluent"

	"github.com/spillwaylog/spillway/internal/needs"
	"github.com/spillwaylog/spillway/test/clients"
	"github.com/spillwaylog/spillway/test/internal/rig"
)

// events is how many events a real client sends.
func events(t testing.TB) int {
	t.Helper()
	return needs.Rounds(t, "SPILLWAY_EVENTS", 20_000, 100_000)
}

// TestGoClient sends events with the official Go client.
func TestGoClient(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		config  fluent.Config
		ack     string // synced where empty
		unix    bool
		tls     bool
		clients int // loggers; one where 0; a client with acks waits for the disk after each event
		divisor int // of the number of events; one where 0
	}{
		{name: "sync", divisor: 10},
		{name: "nanoseconds", config: fluent.Config{SubSecondPrecision: true}},
		{
			name: "async", config: fluent.Config{SubSecondPrecision: true, Async: true, BufferLimit: 1 << 20},
			divisor: 10,
		},
		{name: "ack", config: fluent.Config{SubSecondPrecision: true, RequestAck: true}, clients: 32, divisor: 10},
		{
			name: "ack journaled", config: fluent.Config{SubSecondPrecision: true, RequestAck: true}, ack: "journaled",
			clients: 8, divisor: 10,
		},
		{name: "unix", config: fluent.Config{SubSecondPrecision: true}, unix: true, divisor: 10},
		{
			name: "unix ack", config: fluent.Config{SubSecondPrecision: true, RequestAck: true}, unix: true,
			clients: 32,
			divisor: 10,
		},
		{name: "tls", config: fluent.Config{SubSecondPrecision: true}, tls: true, divisor: 10},
		{
			name: "tls ack", config: fluent.Config{SubSecondPrecision: true, RequestAck: true}, tls: true, clients: 8,
			divisor: 10,
		},
		{
			name: "async ack", config: fluent.Config{RequestAck: true, Async: true, BufferLimit: 1 << 20}, clients: 32,
			divisor: 10,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			count := events(t) / max(1, tt.divisor)
			s, out := rig.NewSetup(t)
			if tt.ack != "" {
				s.Args = []string{"--ack", tt.ack}
			}
			config := tt.config
			config.TagPrefix = "go"
			config.ReadTimeout = rig.Patience
			config.WriteTimeout = rig.Patience
			if tt.unix {
				config.FluentNetwork = "unix"
				config.FluentSocketPath = rig.SocketPath(t)
				s.Listen = []string{"forward+unix://" + config.FluentSocketPath}
			}
			if tt.tls {
				u := url.URL{Scheme: "forward", Host: "127.0.0.1:0"}
				guard{tls: true}.put(t, &u, &clients.Order{})
				s.Listen = []string{u.String()}
				config.FluentNetwork = "tls"
				config.TlsInsecureSkipVerify = true // the client takes no authorities but the system's
			}
			c := rig.StartCollector(t, s)
			if !tt.unix {
				config.FluentHost, config.FluentPort = hostPort(t, c.Addr)
			}
			want := func(n int) rig.Line {
				when := time.Unix(1700000000+int64(n), int64(n)*1009+1).UTC()
				if !config.SubSecondPrecision {
					when = when.Truncate(time.Second)
				}
				return rig.Line{Time: when, Tag: fmt.Sprint("go.tag", n%3), Record: map[string]any{
					"n":    json.Number(fmt.Sprint(n)),
					"text": fmt.Sprintf("zwölf \"%d\"\n", n),
					"half": json.Number(fmt.Sprintf("%d.5", n)),
					"list": []any{nil, true, map[string]any{"deep": json.Number(fmt.Sprint(-n))}},
				}}
			}
			loggers := max(1, tt.clients)
			begin := time.Now()
			var wg sync.WaitGroup
			for i := range loggers {
				wg.Go(func() {
					logger, err := fluent.New(config)
					if err != nil {
						t.Error(err)
						return
					}
					for n := i; n < count; n += loggers {
						err := logger.PostWithTime(fmt.Sprint("tag", n%3),
							time.Unix(1700000000+int64(n), int64(n)*1009+1), map[string]any{
								"n": n, "text": fmt.Sprintf("zwölf \"%d\"\n", n), "half": float64(n) + 0.5,
								"list": []any{nil, true, map[string]int{"deep": -n}},
							})
						if err != nil {
							t.Errorf("event %d: %v", n, err)
							return
						}
					}
					if err := logger.Close(); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			rig.Figure(t, "%d events from %d clients in %.1f s", count, loggers, time.Since(begin).Seconds())
			rig.WaitLines(t, out, count)
			c.Stop()
			wantEvents(t, rig.ReadLines(t, out), count, want)
		})
	}
}

// TestGoClientRestart kills and ends the collector under the official client. It resends a message
// as it was.
func TestGoClientRestart(t *testing.T) {
	t.Parallel()
	s, out := rig.NewSetup(t)
	o := &clients.Order{Tag: "client", Host: "127.0.0.1", Port: needs.Port("127.0.0.1"), Count: 2000}
	s.Listen = []string{fmt.Sprintf("forward://%s:%d", o.Host, o.Port)}
	restartUnder(t, s, o, func(acked func(n int)) {
		logger, err := fluent.New(fluent.Config{
			FluentHost: o.Host, FluentPort: o.Port, RequestAck: true, ReadTimeout: rig.Patience,
			RetryWait: 20, MaxRetryWait: 200, MaxRetry: 1000,
		})
		if err != nil {
			t.Error(err)
			return
		}
		defer logger.Close()
		for n := range o.Count {
			when, tag, record := o.Event(n)
			if err := logger.PostWithTime(tag, when, record); err != nil {
				t.Errorf("event %d: %v", n, err)
				return
			}
			acked(n)
		}
	})
	wantSent(t, rig.ReadLines(t, out), o)
}

// wantEvents checks that each of count events is in the lines once, as want says; an event's number
// is the field "n".
func wantEvents(t testing.TB, lines []rig.Line, count int, want func(n int) rig.Line) {
	t.Helper()
	seen := make([]bool, count)
	wrong := 0
	fail := func(format string, args ...any) {
		if wrong++; wrong < 20 {
			t.Errorf(format, args...)
		}
	}
	for _, l := range lines {
		n := l.Number()
		if n < 0 || n >= count {
			fail("a stray event: %v", l)
			continue
		}
		if seen[n] {
			fail("event %d is there twice", n)
		}
		seen[n] = true
		w := want(n)
		if !l.Time.Equal(w.Time) || l.Tag != w.Tag || !reflect.DeepEqual(l.Record, w.Record) {
			fail("event %d is\n%v %s %v, want\n%v %s %v", n, l.Time, l.Tag, l.Record, w.Time, w.Tag, w.Record)
		}
	}
	for n, ok := range seen {
		if !ok {
			fail("event %d is missing", n)
		}
	}
	if wrong > 0 {
		t.Errorf("%d events are wrong", wrong)
	}
}
