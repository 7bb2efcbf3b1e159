// SPDX-License-Identifier: Apache-2.0

package moby_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"path/filepath"
	"reflect"
	"sync"
	"testing"
	"time"

	official "github.com/fluent/fluent-logger-golang/fluent"
	"github.com/moby/moby/v2/daemon/logger"
	"github.com/moby/moby/v2/daemon/logger/fluentd"
	"go.uber.org/goleak"

	"github.com/spillwaylog/spillway"
	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/msgpack"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	patience = 4 * time.Minute
	count    = 200
)

// TestReplaced checks that the driver's dependency is ours: that it compiles says it, for the
// original has no NewWith.
func TestReplaced(t *testing.T) {
	f, err := official.NewWith(official.Config{FluentNetwork: "none"}, &spillway.Options{})
	if f == nil || err == nil {
		t.Error(f, err)
	}
}

// line is one event.
type line struct {
	Tag    string
	Time   time.Time
	Record map[string]string
}

// sink is a Forward server that remembers lines.
type sink struct {
	mu    sync.Mutex
	lines []line
	acked int
	more  chan struct{}
}

func (s *sink) ServeForward(_ context.Context, c *forward.Chunk) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := forward.ReadEntries(c.Entries)
	for e, ok := r.Next(); ok; e, ok = r.Next() {
		text, _, err := msgpack.AppendJSON(nil, e.Record, nil)
		if err != nil {
			return err
		}
		l := line{Tag: c.Tag, Time: e.Time()}
		if err := json.Unmarshal(text, &l.Record); err != nil {
			return err
		}
		s.lines = append(s.lines, l)
		if c.ID != nil {
			s.acked++
		}
	}
	close(s.more)
	s.more = make(chan struct{})
	return nil
}

func (s *sink) wait(t *testing.T, n int) (lines []line, acked int) {
	t.Helper()
	late := time.After(patience)
	for {
		s.mu.Lock()
		lines, acked, more := s.lines, s.acked, s.more
		s.mu.Unlock()
		if len(lines) >= n {
			return lines, acked
		}
		select {
		case <-more:
		case <-late:
			t.Fatalf("%d lines came, want %d", len(lines), n)
		}
	}
}

// TestDriver logs through Docker's driver in each of its ways and waits for the lines.
func TestDriver(t *testing.T) {
	t.Setenv("SPILLWAY_SHM", t.TempDir())
	for _, network := range []string{"tcp", "unix"} {
		for name, opts := range map[string]map[string]string{
			"sync":        {},
			"sync, acks":  {"fluentd-request-ack": "true", "fluentd-read-timeout": "30s"},
			"async":       {"fluentd-async": "true"},
			"async, acks": {"fluentd-async": "true", "fluentd-request-ack": "true"},
			"async, reconnect": {
				"fluentd-async": "true", "fluentd-request-ack": "true",
				"fluentd-async-reconnect-interval": "100ms", "fluentd-write-timeout": "30s",
			},
		} {
			t.Run(network+", "+name, func(t *testing.T) {
				address := "127.0.0.1:0"
				if network == "unix" {
					address = filepath.Join(t.TempDir(), "s")
				}
				l, err := net.Listen(network, address)
				if err != nil {
					t.Fatal(err)
				}
				s := &sink{more: make(chan struct{})}
				server := &forward.Server{Handler: s}
				var wg sync.WaitGroup
				wg.Go(func() { _ = server.Serve(l) })
				defer wg.Wait()
				defer func() { _ = server.Close() }()

				config := map[string]string{
					"fluentd-address":              network + "://" + l.Addr().String(),
					"fluentd-sub-second-precision": "true", "tag": "docker.{{.Name}}",
				}
				for k, v := range opts {
					config[k] = v
				}
				if err := fluentd.ValidateLogOpt(config); err != nil {
					t.Fatal(err)
				}
				driver, err := fluentd.New(logger.Info{
					ContainerID: "0123456789ab", ContainerName: "/web",
					Config: config,
				})
				if err != nil {
					t.Fatal(err)
				}
				when := time.Date(2026, 11, 21, 2, 3, 4, 123456789, time.UTC)
				for n := range count {
					m := logger.NewMessage()
					m.Line = append(m.Line[:0], fmt.Sprintf("line %d", n)...)
					m.Source, m.Timestamp = "stdout", when
					if err := driver.Log(m); err != nil {
						t.Fatal(err)
					}
				}
				lines, acked := s.wait(t, count)
				if err := driver.Close(); err != nil {
					t.Error(err)
				}
				for n, got := range lines {
					want := line{"docker.web", when, map[string]string{
						"container_id": "0123456789ab", "container_name": "/web", "source": "stdout",
						"log": fmt.Sprint("line ", n),
					}}
					if !reflect.DeepEqual(got, want) {
						t.Fatalf("event %d: %v, want %v", n, got, want)
					}
				}
				if wantAcks := opts["fluentd-request-ack"] == "true"; wantAcks != (acked == count) {
					t.Errorf("%d of %d events asked for an ack", acked, count)
				}
			})
		}
	}
}
