// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// serveTelling is a collector with an admin address and an output that works, and that address
// and the one of its input.
func serveTelling(t *testing.T, more ...string) (admin, input string) {
	t.Helper()
	s := startServe(t, append([]string{
		"--listen", "apps=forward://127.0.0.1:0", "--admin", "http://127.0.0.1:0?tail=true", "--data",
		filepath.Join(t.TempDir(), "data"),
		"--to", "all=discard:", "--ack", "journaled", "--log-level", "info",
	}, more...)...)
	admin, _ = s.next("telling")["address"].(string)
	input, _ = s.next("listening")["url"].(string)
	return admin, input
}

// TestTopOnce: its table says what is so, of events that flow.
func TestTopOnce(t *testing.T) {
	t.Parallel()
	admin, input := serveTelling(t, "--to", "bus=forward://127.0.0.1:1")
	if got := command(t, "one\ntwo\nthree\n", "send", "--to", input); got.code != 0 {
		t.Fatalf("%+v", got)
	}
	flows := make(chan struct{})
	ended := make(chan result)
	go func() { // so that there is a rate
		last := result{}
		for {
			select {
			case <-flows:
				ended <- last
				return
			default:
				last = command(t, "x\n", "send", "--to", input)
			}
		}
	}()
	wants := []string{
		`(?m)^spillway \S+ at http://` + regexp.QuoteMeta(admin) + `, pid \d+, up \d+s, ack journaled$`,
		`(?m)^journal \d+(\.\d)? [KM]?i?B of 4.0 GiB \| (\d+ syncs/s, \d+\.\dms each|no sync) \| 0 dead letters, 0 events$`,
		`(?m)^INPUT +EVENTS/s +BYTES/s +CONNS +REFUSED +INVALID +EVENTS$`,
		`(?m)^apps +[1-9][0-9,]* +\d+(\.\d)? [KM]?i?B +\d +0 +0 +[0-9,]+$`,
		`(?m)^OUTPUT +EVENTS/s +WAITING +BYTES +AGE +LETTERS  STATE$`,
		`(?m)^all +[0-9,]+ +\d+ +\d+(\.\d)? [KM]?i?B +\d+s +0  works$`,
		`(?m)^bus +0 +[1-9][0-9,]* +\d+(\.\d)? [KM]?i?B +\d+s +0  fails x\d+, in \d+s: dial tcp .* refused$`,
		`(?m)^MESSAGES, the newest last\n\d\d:\d\d:\d\d \S*output.broken bus( x\d+)?: dial tcp .* refused .*behind=`,
	}
	var got result
	for limit := time.Now().Add(4 * time.Minute); time.Now().Before(limit); { // the output takes its time to fail
		if got = command(t, "", "top", "--admin", admin, "--once", "--every", "300ms"); got.code != 0 {
			t.Fatalf("%+v", got)
		}
		left := wants
		for len(left) > 0 && regexp.MustCompile(left[0]).MatchString(got.out) {
			left = left[1:]
		}
		if len(left) == 0 {
			break
		}
	}
	close(flows)
	if last := <-ended; last.code != 0 {
		t.Errorf("%+v", last)
	}
	for _, want := range wants {
		if !regexp.MustCompile(want).MatchString(got.out) {
			t.Errorf("no %s in\n%s", want, got.out)
		}
	}
}

// TestTopMistakes: errors name the address, or what is wrong with it.
func TestTopMistakes(t *testing.T) {
	t.Parallel()
	const nobody = "127.0.0.1:1"
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_,
			_ = io.WriteString(w, "<html>")
	}))
	defer other.Close()
	for _, tt := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"top", "--admin", nobody}, 1, "spillway: http://" + nobody + ": dial tcp"},
		{[]string{"tail", "--admin", nobody}, 1, "spillway: http://" + nobody + ": dial tcp"},
		{[]string{"top", "--admin", other.URL}, 1, "spillway: " + other.URL +
			": what it tells of its status is not understood"},
		{[]string{"top", "--admin", "nonsense"}, 2, "write host:port, such as 127.0.0.1:24220"},
		{[]string{"top", "--every", "1ms"}, 2, "--every: 1ms is too often; at least 100ms"},
		{
			[]string{"tail", "--where", `a == 1 and level = "x"`},
			2,
			"--where:1:18: = is no comparison; == is\n    a == 1 and level = \"x\"\n                     ^\n",
		},
		{
			[]string{"tail", "--where", "a == 1 and\nlevel = \"x\x1b\""},
			2,
			"--where:2:7: = is no comparison; == is\n    level = \"x?\"\n          ^\n",
		},
		{[]string{"tail", "--tag", "a**"}, 2, "spillway: --tag: ** stands for whole parts of a tag"},
		{[]string{"tail", "--rate=-1"}, 2, "spillway: --rate: it is 1 to 10000 events a second"},
	} {
		if got := command(t, "", tt.args...); got.code != tt.code || !strings.Contains(got.err, tt.want) ||
			got.out != "" {
			t.Errorf("%q: %+v, want %q", tt.args, got, tt.want)
		}
	}
}

// lookOf reads a look.
func lookOf(t testing.TB, text string, at time.Time) *look {
	t.Helper()
	l := &look{at: at}
	if err := json.Unmarshal([]byte(text), &l.told); err != nil {
		t.Fatal(err)
	}
	return l
}

const (
	toldBefore = `{"version":"v1","pid":7,"time":"2026-11-21T10:00:00Z","since":"2026-11-21T09:00:00Z","uptime_seconds":3600,"ack":"synced",
"inputs":[{"name":"apps","in":1000,"bytes":100000,"connections":2,"refused":1,"invalid":2},{"name":"gone","removed":true,"in":7},
 {"name":"forward://0.0.0.0:24224/a/very/long/name","in":5}],
"outputs":[{"name":"bus","out":10,"behind":990,"behind_bytes":1048576,"behind_seconds":65,"failure":{"tries":3,"next_try_seconds":9.5,"error":"refused\u001b[2J\u202e\n"}},
 {"name":"archive","out":1000},{"name":"old","removed":true,"dropped":{"removed":5}}],
"journal":{"used":1048576,"limit":1073741824,"syncs":10,"sync_seconds":1},"letters":{"letters":4,"events":7},"messages":[
 {"time":"2026-11-21T08:00:00Z","level":"WARN","code":"peer-garbage","text":"bad input","about":"apps","times":30,"attrs":"peer=1.2.3.4:5"},
 {"time":"2026-11-21T09:59:50Z","level":"ERROR","text":"output broken","about":"bus","error":"refused\u001b]0;x\u0007","times":1}]}`
	toldThen = `{"version":"v1","pid":7,"time":"2026-11-21T10:00:02Z","since":"2026-11-21T09:00:00Z","uptime_seconds":3602,"ack":"synced",
"inputs":[{"name":"apps","in":3000,"bytes":302400,"connections":2,"refused":2,"invalid":2},{"name":"gone","removed":true,"in":7},
 {"name":"forward://0.0.0.0:24224/a/very/long/name","in":5}],
"outputs":[{"name":"bus","out":10,"behind":2990,"behind_bytes":3145728,"behind_seconds":67,"dead_lettered":2,"failure":{"tries":4,"next_try_seconds":9.5,"error":"refused\u001b[2J\u202e\n"}},
 {"name":"archive","out":3000},{"name":"old","removed":true,"dropped":{"removed":5}}],
"journal":{"used":966367641,"limit":1073741824,"syncs":30,"sync_seconds":1.05},"letters":{"letters":4,"events":7},"messages":[
 {"time":"2026-11-21T08:00:00Z","level":"WARN","code":"peer-garbage","text":"bad input","about":"apps","times":30,"attrs":"peer=1.2.3.4:5"},
 {"time":"2026-11-21T09:59:50Z","level":"ERROR","text":"output broken","about":"bus","error":"refused\u001b]0;x\u0007","times":1}]}`
)

// shown are the lines of a table.
func (t *topTable) shown(width, height int) string {
	var b strings.Builder
	for _, l := range t.lines(width, height) {
		b.WriteString(l.text + "\n")
	}
	return b.String()
}

// TestTopTable: what it says, on the usual terminal; what a collector tells does nothing to one.
func TestTopTable(t *testing.T) {
	now := time.Now()
	table := &topTable{address: "http://127.0.0.1:24220", now: lookOf(t, toldBefore, now)}
	if got := table.shown(80, 24); !strings.Contains(got,
		"\napps                 -         -      2        1        2         1,000\n") {
		t.Errorf("before there is a rate:\n%s", got)
	}
	table.take(lookOf(t, toldThen, now))
	got := table.shown(80, 24)
	got = regexp.MustCompile(`(?m)^2026-11-21 \d\d:\d\d `).ReplaceAllString(got, "DAY ") // the zone is the machine's
	want := `spillway v1 at http://127.0.0.1:24220, pid 7, up 1h0m, ack synced
journal 922 MiB of 1.0 GiB | 10 syncs/s, 2.5ms each | 4 dead letters, 7 events

INPUT         EVENTS/s   BYTES/s  CONNS  REFUSED  INVALID        EVENTS
apps             1,000    99 KiB      2        2        2         3,000
forward://..         0       0 B      0        0        0             5

OUTPUT        EVENTS/s     WAITING    BYTES     AGE  LETTERS  STATE
bus                  0       2,990  3.0 MiB    1m7s        2  fails x4, in 9s: r
archive          1,000           0      0 B      0s        0  works
old                  0           0      0 B      0s        0  removed, dropped 5

MESSAGES, the newest last
DAY peer-garbage apps x30  peer=1.2.3.4:5
DAY output broken bus: refused?]0;x?
`
	if got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	marks := ""
	for _, l := range table.lines(80, 24) {
		marks += fmt.Sprint(l.style)
	}
	if marks != "120120013000102" {
		t.Errorf("marks %s", marks)
	}
	table.fail(errors.New("no route\x1b[2J"), now)
	if got := table.shown(80, 24); !regexp.MustCompile(`^no answer for \ds: no route\?\[2J\n`).MatchString(got) {
		t.Errorf("%s", got)
	}
	again := lookOf(t, toldBefore, now)
	again.Since = again.Since.Add(time.Hour)
	if table.take(again); table.before != nil || table.failed != nil {
		t.Error("another process is compared with the one before")
	}
}

// TestTopTableFits: on whatever terminal, no line is wider and there are no more of them; what
// fails is seen where there is not room for all.
func TestTopTableFits(t *testing.T) {
	text := strings.Replace(toldThen, `"outputs":[`, `"outputs":[`+
		strings.Repeat(`{"name":"filler","out":1,"behind":3},`, 40), 1)
	text = strings.Replace(text, `"inputs":[`, `"inputs":[`+strings.Repeat(`{"name":"many","in":1},`, 40), 1)
	table := &topTable{address: "http://x", now: lookOf(t, text, time.Now())}
	for _, width := range []int{1, 40, 79, 80, 132} {
		for _, height := range []int{1, 2, 3, 8, 15, 16, 17, 24, 40, 100, 119} {
			lines := table.lines(width, height)
			if len(lines) > height {
				t.Fatalf("%d lines on %d", len(lines), height)
			}
			for _, l := range lines {
				if len(l.text) > max(width, 40) {
					t.Fatalf("%d columns on %d: %s", len(l.text), width, l.text)
				}
			}
			if got := table.shown(width, height); height >= 16 &&
				(!strings.Contains(got, "\nbus ") || !strings.Contains(got, "output broken bus")) {
				t.Fatalf("what fails is not seen on %d lines:\n%s", height, got)
			}
		}
	}
	if got := table.shown(80, 24); !strings.Contains(got, " more inputs\n") ||
		!strings.Contains(got, " more outputs\n") {
		t.Errorf("%s", got)
	}
}

// FuzzTop: whatever a collector tells, nothing but printable ASCII comes of it, in no more columns
// and rows than there are.
func FuzzTop(f *testing.F) {
	f.Add([]byte(toldBefore), []byte(toldThen), 80, 24)
	f.Add([]byte(`{"inputs":null,"outputs":[{"name":"\u009b","behind":-5,"behind_seconds":-1e300,"failure":{}}]}`),
		[]byte(`{}`), 1, 1)
	f.Fuzz(func(t *testing.T, before, then []byte, width, height int) {
		table := &topTable{address: "http://x"}
		for _, text := range [][]byte{before, then} {
			l := &look{at: time.Now()}
			if json.NewDecoder(bytes.NewReader(text)).Decode(&l.told) != nil {
				return
			}
			if table.now == nil {
				table.now = l
			} else {
				table.take(l)
			}
			width, height = width%500, height%200
			lines := table.lines(width, height)
			if height > 0 && len(lines) > height {
				t.Fatalf("%d lines on %d", len(lines), height)
			}
			for _, l := range lines {
				if len(l.text) > max(width, 40) ||
					strings.IndexFunc(l.text, func(r rune) bool { return r < ' ' || r > '~' }) >= 0 {
					t.Fatalf("%q", l.text)
				}
			}
		}
	})
}
