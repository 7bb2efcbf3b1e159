// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"bytes"
	"errors"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/internal/codes"
)

// TestMessagesNameThePeer: what is said of a connection names its port and the input, and each
// connection is told at the debug level only.
func TestMessagesNameThePeer(t *testing.T) {
	for _, level := range []slog.Level{slog.LevelInfo, slog.LevelDebug} {
		log := make(messages, 1000)
		r := run(t, &Config{
			Dir: t.TempDir(), Outputs: Ends("discard:"), Inputs: Ends("forward://127.0.0.1:0", "forward://127.0.0.1:0"),
			Log: slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: level})),
		})
		second := r.Addrs()[1].String()
		c, err := net.Dial("tcp", second)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Write([]byte{0xc1}); err != nil {
			t.Fatal(err)
		}
		texts := []string{"bad input"}
		if level == slog.LevelDebug {
			texts = []string{"connection opened", "bad input", "connection closed"}
		}
		for _, text := range texts {
			line := log.next(t, text)
			if line["peer"] != c.LocalAddr().String() || line["input"] != "forward://"+second {
				t.Errorf("%v; the peer is %v, the input %v", line, c.LocalAddr(), second)
			}
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if err := r.stop(); err != nil {
			t.Error(err)
		}
		close(log)
		for line := range log {
			if line["msg"] == "connection closed" {
				t.Errorf("at level %v: %v", level, line)
			}
		}
	}
}

// TestSameErrorIsToldOnceAMinute: what goes wrong again and again is told at once and then with
// how often it came; anything else is told at once.
func TestSameErrorIsToldOnceAMinute(t *testing.T) {
	var log bytes.Buffer
	r := newReporter(slog.New(slog.NewTextHandler(&log, nil)))
	now := time.Unix(1_700_000_000, 0)
	r.now = func() time.Time { return now }
	for range 150 {
		r.report(codes.JournalError, "journal", errors.New("no space"))
		now = now.Add(time.Second)
	}
	r.report(codes.JournalError, "journal", errors.New("something else"))
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	if len(lines) != 4 || !strings.HasSuffix(lines[0], `error="no space"`) ||
		!strings.HasSuffix(lines[1], `error="no space" left_out=59`) ||
		!strings.HasSuffix(lines[2], `error="no space" left_out=59`) ||
		!strings.HasSuffix(lines[3], `error="something else"`) {
		t.Errorf("%s", &log)
	}
}
