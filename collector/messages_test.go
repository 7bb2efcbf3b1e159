// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// TestMessages: warnings and errors are noted whatever the log's level, each kind of each end once,
// the newest at the end; and the log has what it had.
func TestMessages(t *testing.T) {
	var had bytes.Buffer
	var ts lastMessages
	log := slog.New(ts.over(slog.NewTextHandler(&had, &slog.HandlerOptions{Level: slog.LevelError})))
	log.Info("not noted")
	log.With("input", "apps").Warn("bad input", "code", "peer-garbage", "kind", "garbage\x1b[2J")
	log.Error("output broken", "output", "bus", "behind", 2, "error", errors.New("refused"))
	log.Error("output broken", "output", "archive")
	for range 1000 {
		log.With("input", "apps").Warn("bad input", "code", "peer-garbage", "kind", "another")
	}
	log.WithGroup("g").Warn("long", "text", strings.Repeat("ä", maxMessageText))
	var got []string
	for _, x := range ts.all() {
		got = append(got, fmt.Sprintf("%s %s %s|%s|%s|%.40s|%d", x.Level, x.Code, x.Text, x.About, x.Error, x.Attrs,
			x.Times))
		if x.Time.IsZero() || len(x.Attrs) > maxMessageText {
			t.Errorf("%+v", x)
		}
	}
	want := []string{
		"ERROR  output broken|bus|refused|behind=2|1", "ERROR  output broken|archive|||1",
		"WARN peer-garbage bad input|apps||kind=another|1001", "WARN  long|||text=" + strings.Repeat("ä", 35) + "|1",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if n := strings.Count(had.String(), "\n"); n != 2 || strings.Contains(had.String(), "code=") {
		t.Errorf("the log has %s", had.String())
	}
	for i := range 3 * maxMessages {
		log.Error("output broken", "output", fmt.Sprint(i))
	}
	if all := ts.all(); len(all) != maxMessages || all[len(all)-1].About != fmt.Sprint(3*maxMessages-1) {
		t.Errorf("%+v", all)
	}
}

// TestMessagesOfACollector: what a peer does wrong is among them.
func TestMessagesOfACollector(t *testing.T) {
	r := run(t, &Config{Dir: t.TempDir(), Outputs: Ends("discard:")})
	exchange(t, r, "GET / HTTP/1.1\r\n\r\n", "")
	for limit := time.Now().Add(4 * time.Minute); time.Now().Before(limit); <-time.After(time.Millisecond) {
		for _, x := range r.Stats().Messages {
			if x.Text == "bad input" && x.Level == slog.LevelWarn && strings.Contains(x.Attrs, "peer=127.0.0.1:") {
				return
			}
		}
	}
	t.Errorf("%+v", r.Stats().Messages)
}
