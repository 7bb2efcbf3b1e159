// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/letters"
	"github.com/spillwaylog/spillway/msgpack"
)

// deadLetter is a letter with events whose records are {"n": number}.
func deadLetter(output, reason string, position uint64, numbers ...int) letters.Letter {
	var b []byte
	for _, n := range numbers {
		b = append(b, 0x92)
		b = forward.AppendEventTime(b, 1795226584, uint32(n))
		b = msgpack.AppendMapHeader(b, 1)
		b = msgpack.AppendString(b, "n")
		b = msgpack.AppendInt(b, int64(n))
	}
	return letters.Letter{
		Output: output, Reason: reason, Time: time.Unix(1795226600, 5).UTC(), Position: position,
		Chunk: &forward.Chunk{Tag: "app.web", Entries: b, Events: len(numbers)},
	}
}

// putLetters makes a data directory with letters, if it is none yet.
func putLetters(t *testing.T, data string, list ...letters.Letter) *letters.Store {
	t.Helper()
	s, err := letters.Open(filepath.Join(data, letters.Dir), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	if err := s.Put(t.Context(), list...); err != nil {
		t.Fatal(err)
	}
	return s
}

func mustCloseStore(t *testing.T, s *letters.Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// threeLetters are of two outputs; the second has some entries of its record.
func threeLetters() []letters.Letter {
	part := deadLetter("kafka", "a \x1b[2Jvalue\nthat is <too> \"large\"", 0x100005000, 4, 5)
	part.Entries = []int{2, 7}
	return []letters.Letter{
		deadLetter("web", "400 Bad Request", 0x100004000, 1, 2, 3), part,
		deadLetter("web", "400 Bad Request", 0x100006000, 6),
	}
}

// TestJournalLetters looks at letters in a data directory with a journal, and at their own, while a
// store has them open.
func TestJournalLetters(t *testing.T) {
	url, data, _ := serve(t)
	if got := command(t, "event\n", "send", "--to", url); got.code != 0 {
		t.Fatalf("%+v", got)
	}
	if got := command(t, "", "journal", "cat", "--letters", data); got != (result{}) {
		t.Errorf("no letters: %+v", got)
	}
	putLetters(t, data, threeLetters()...)
	own := filepath.Join(data, letters.Dir)

	kinds := `DEAD LETTERS OF  LETTERS  EVENTS  BYTES  FIRST                 LAST                  REASON
web              2        4       \d+ +2026-11-21T02:03:20Z  2026-11-21T02:03:20Z  400 Bad Request
kafka            1        2       \d+ +2026-11-21T02:03:20Z  2026-11-21T02:03:20Z  a \?\[2Jvalue that is <too> "large"
`
	if got := command(t, "", "journal", "ls", data); got.code != 0 || !strings.Contains(got.out, "SEGMENT") ||
		!regexp.MustCompile(`(?s)CURSOR OF.*\n\n`+kinds+`$`).MatchString(got.out) {
		t.Errorf("ls of the data directory: %+v\n%s", got, got.out)
	}
	each := `
LETTER             TIME                  POSITION           ENTRIES        EVENTS  TAG                   OUTPUT                REASON
[0-9a-f]{8}/[0-9a-f]{8}  2026-11-21T02:03:20Z  00000001/00004000  all                 3  app.web               web                   400 Bad Request
[0-9a-f]{8}/[0-9a-f]{8}  2026-11-21T02:03:20Z  00000001/00005000  2,7                 2  app.web               kafka                 a \?\[2Jvalue.*
[0-9a-f]{8}/[0-9a-f]{8}  2026-11-21T02:03:20Z  00000001/00006000  all                 1  app.web               web                   400 Bad Request
`
	if got := command(t, "", "journal", "ls", own); got.code != 0 ||
		!regexp.MustCompile(`^`+kinds+each+`$`).MatchString(got.out) {
		t.Errorf("ls of the letters: %+v\n%s", got, got.out)
	}

	if got := command(t, "", "journal", "cat", data); got.code != 0 || strings.Count(got.out, "\n") != 1 ||
		got.err != "and 3 letters, 6 events that an output refused: --letters prints them\n" {
		t.Errorf("cat: %+v", got)
	}
	events := []string{
		`{"time":"2026-11-21T02:03:04.000000001Z","tag":"app.web","n":1}`,
		`{"time":"2026-11-21T02:03:04.000000002Z","tag":"app.web","n":2}`,
		`{"time":"2026-11-21T02:03:04.000000003Z","tag":"app.web","n":3}`,
		`{"time":"2026-11-21T02:03:04.000000004Z","tag":"app.web","n":4}`,
		`{"time":"2026-11-21T02:03:04.000000005Z","tag":"app.web","n":5}`,
		`{"time":"2026-11-21T02:03:04.000000006Z","tag":"app.web","n":6}`,
	}
	if got := command(t, "", "journal", "cat", own); got.code != 0 || got.err != "" ||
		got.out != strings.Join(events, "\n")+"\n" {
		t.Errorf("cat of the letters: %+v", got)
	}
	for _, dir := range []string{data, own} {
		got := command(t, "", "journal", "cat", "--letters", dir)
		lines := strings.Split(got.out, "\n")
		if got.code != 0 || len(lines) != 7 {
			t.Fatalf("%+v", got)
		}
		for i, event := range events {
			var line struct {
				Output, Reason, Refused, Position, Letter string
				Entry                                     int
				Event                                     json.RawMessage
			}
			if err := json.Unmarshal([]byte(lines[i]), &line); err != nil {
				t.Fatalf("%s: %v", lines[i], err)
			}
			want := threeLetters()[[]int{0, 0, 0, 1, 1, 2}[i]]
			if string(line.Event) != event || line.Output != want.Output ||
				line.Refused != "2026-11-21T02:03:20.000000005Z" || line.Entry != []int{0, 1, 2, 2, 7, 0}[i] ||
				!strings.HasPrefix(line.Position, "00000001/0000") ||
				line.Reason != strings.ReplaceAll(want.Reason, "\n", " ") {
				t.Errorf("%s", lines[i])
			}
		}
	}
	if got := command(t, "", "journal", "verify", data); got.code != 0 ||
		!strings.Contains(got.out, "dead letters:\n3 records, ") || strings.Count(got.out, "records, ") != 2 {
		t.Errorf("verify: %+v", got)
	}
}

// TestJournalLettersDamage: what is no letter is told, and everything else printed.
func TestJournalLettersDamage(t *testing.T) {
	data := t.TempDir()
	broken := deadLetter("web", "x", 2, 9)
	broken.Chunk.Entries = append(broken.Chunk.Entries, 0xc1)
	s := putLetters(t, data, deadLetter("web", "x", 1, 1), broken, deadLetter("web", "x", 3, 3))
	mustCloseStore(t, s)
	for _, flag := range []string{"", "--letters"} {
		args := slices.DeleteFunc([]string{"journal", "cat", flag, data}, func(s string) bool { return s == "" })
		if got := command(t, "", args...); got.code != 1 || strings.Count(got.out, "\n") != 3 ||
			!strings.Contains(got.err, "1 letter cannot be read") {
			t.Errorf("%+v", got)
		}
	}
	if got := command(t, "", "journal", "verify", data); got.code != 1 || !strings.Contains(got.out, "entry at byte") {
		t.Errorf("%+v", got)
	}
}

func TestLetterTable(t *testing.T) {
	var table letterTable
	for i := range maxKinds + 50 {
		l := deadLetter("web", fmt.Sprintf("reason %05d", i), uint64(i), make([]int, 1+i%2)...)
		table.add(&letters.Entry{Letter: l, Bytes: 10})
	}
	var out strings.Builder
	table.print(&out)
	rows := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(rows) != kindsShown+2 || !strings.Contains(rows[1], "web\t50\t75\t500\t") ||
		!strings.HasSuffix(rows[1], "other reasons") ||
		!strings.HasSuffix(rows[len(rows)-1], fmt.Sprintf("%d more reasons", maxKinds+1-kindsShown)) ||
		len(table.kinds) != maxKinds+1 {
		t.Errorf("%d rows, %s\n%s", len(rows), rows[1], rows[len(rows)-1])
	}
	for _, tc := range []struct {
		entries []int
		want    string
	}{
		{nil, "all"},
		{[]int{}, ""},
		{[]int{0}, "0"},
		{[]int{0, 1, 2}, "0-2"},
		{[]int{0, 2, 3, 9}, "0,2-3,9"},
		{[]int{0, 2, 4, 6}, "0,2,4,..."},
	} {
		if got := entriesOf(&letters.Entry{Letter: letters.Letter{Entries: tc.entries}}); got != tc.want {
			t.Errorf("%v: %s", tc.entries, got)
		}
	}
}

// TestReplay: what an output refused comes out at another server, once; a filter sends some,
// --dry-run and --keep none away.
func TestReplay(t *testing.T) {
	data := t.TempDir()
	mustCloseStore(t, putLetters(t, data, threeLetters()...))
	url, _, stop := serve(t)
	before := command(t, "", "journal", "ls", data)
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"--dry-run"}, `(?s)^DEAD LETTERS OF.*\nweb  .*\nkafka  .*\nwould be sent to the server that --to names: 3 letters, 6 events`},
		{
			[]string{"--dry-run", "--to", url, "--output", "kafka"},
			`(?s)^[^\n]*\nkafka[^\n]*\n\nwould be sent to forward://127.0.0.1:\d+: 1 letter, 2 events`,
		},
		{
			[]string{"--to", url, "--keep", "--output", "kafka"},
			`^sent 1 letter, 2 events; acked 1 letter, 2 events; left 0 letters, 0 events\n$`,
		},
	} {
		got := command(t, "", append([]string{"replay", data}, tc.args...)...)
		if got.code != 0 || got.err != "" || !regexp.MustCompile(tc.want).MatchString(got.out) {
			t.Errorf("%q: %+v", tc.args, got)
		}
		if after := command(t, "", "journal", "ls", data); after != before {
			t.Errorf("%q changed %s to %s", tc.args, before.out, after.out)
		}
	}
	for _, tc := range []struct {
		args []string
		want string
	}{
		// Again: its id is known.
		{
			[]string{data, "--output", "kafka"},
			"sent 1 letter, 2 events; acked 1 letter, 2 events; left 0 letters, 0 events\n",
		},
		{
			[]string{filepath.Join(data, letters.Dir)},
			"sent 2 letters, 4 events; acked 2 letters, 4 events; left 0 letters, 0 events\n",
		},
		{[]string{data}, "sent 0 letters, 0 events; acked 0 letters, 0 events; left 0 letters, 0 events\n"},
		{
			[]string{data, "--output", "kafka"},
			"sent 0 letters, 0 events; acked 0 letters, 0 events; left 0 letters, 0 events\n",
		},
	} {
		if got := command(t, "", append([]string{"replay", "--to", url}, tc.args...)...); got != (result{
			0, tc.want,
			"",
		}) {
			t.Errorf("%q: %+v", tc.args, got)
		}
	}
	out := strings.Split(strings.TrimSpace(stop()), "\n")
	slices.Sort(out)
	if len(out) != 6 || !strings.HasSuffix(out[0], `"n":1}`) || !strings.HasSuffix(out[5], `"n":6}`) {
		t.Errorf("%q", out)
	}
	if got := command(t, "", "journal", "ls", data); got.code != 0 || strings.Count(got.out, "\n") != 3 {
		t.Errorf("%+v", got)
	}
}

// TestReplayFails: what is wrong is said, and what is left counted.
func TestReplayFails(t *testing.T) {
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	none := "forward+unix://" + filepath.Join(dir, "none")
	s := putLetters(t, data, threeLetters()...)
	empty := filepath.Join(dir, "empty")
	if err := os.MkdirAll(filepath.Join(empty, "journal"), 0o700); err != nil {
		t.Fatal(err)
	}
	locked := []string{
		fmt.Sprintf("process %d holds %s", os.Getpid(), filepath.Join(data, letters.Dir, "lock")),
		"run this again when", "--keep",
	}
	for _, tc := range []struct {
		args []string
		code int
		err  []string
	}{
		{[]string{data}, 2, []string{"--to is missing"}},
		{[]string{data, "--to", none, "--timeout", "0"}, 2, []string{"--timeout"}},
		{[]string{data, "--to", "kafka://h"}, 2, []string{"kafka"}},
		{[]string{data, "--to", none}, 1, locked},
		{
			[]string{data, "--to", none, "--keep", "--output", "kafak"},
			1,
			[]string{`--output "kafak" has no letters; there are letters of "kafka", "web"`},
		},
		{[]string{data, "--dry-run", "--output", "kafak"}, 1, []string{`there are letters of "kafka", "web"`}},
		{[]string{dir, "--to", none}, 1, []string{"neither a data directory nor"}},
		{[]string{empty, "--to", none}, 0, nil},
		{
			[]string{data, "--to", none, "--keep", "--timeout", "50ms"},
			1,
			[]string{"3 letters, 6 events not acked: gave up: nothing was acked for 50ms"},
		},
	} {
		got := command(t, "", append([]string{"replay"}, tc.args...)...)
		if got.code != tc.code {
			t.Errorf("%q: %+v", tc.args, got)
		}
		for _, want := range tc.err {
			if !strings.Contains(got.err, want) {
				t.Errorf("%q: %s, want %s", tc.args, got.err, want)
			}
		}
	}
	mustCloseStore(t, s)

	// One that cannot be read stays, and the others go.
	broken := deadLetter("web", "x", 2, 9)
	broken.Chunk.Entries = []byte{0xc1}
	mustCloseStore(t, putLetters(t, data, broken, deadLetter("web", "x", 3, 3)))
	url, _, stop := serve(t)
	for _, want := range []string{
		"sent 4 letters, 7 events; acked 4 letters, 7 events; left 1 letter, 1 event\n",
		"sent 0 letters, 0 events; acked 0 letters, 0 events; left 1 letter, 1 event\n",
	} {
		got := command(t, "", "replay", data, "--to", url)
		if got.code != 1 || got.out != want || !strings.Contains(got.err, "stays: letters: no letter: ") ||
			!strings.HasSuffix(got.err, "spillway: 1 letter, 1 event not acked: 1 letter cannot be read\n") {
			t.Errorf("%+v", got)
		}
	}
	if out := stop(); strings.Count(out, "\n") != 7 {
		t.Errorf("%s", out)
	}
}

func TestProgress(t *testing.T) {
	now := time.Unix(1795226600, 0)
	var out strings.Builder
	p := newProgress(nil, &out, tally{events: 4000})
	p.now, p.began, p.told = func() time.Time { return now }, now, now
	for _, tc := range []struct {
		after time.Duration
		done  int64
		bar   string
	}{
		{0, 0, "[>                   ] 0% 0 of 4,000 events acked"},
		{2 * time.Second, 1000, "[=====>              ] 25% 1,000 of 4,000 events acked, 500/s, 6s left"},
		{20 * time.Second, 4000, "[====================] 100% 4,000 of 4,000 events acked, 200/s, 0s left"},
		{20 * time.Second, 5000, "[====================] 100% 5,000 of 4,000 events acked, 250/s, 0s left"},
	} {
		now = p.began.Add(tc.after)
		if got := p.bar(tally{events: tc.done}, now); got != tc.bar {
			t.Errorf("%q, want %q", got, tc.bar)
		}
		p.show(tally{events: tc.done})
	}
	if out.String() != "spillway: 4,000 of 4,000 events acked, 200/s, 0s left\n" {
		t.Errorf("%q", out.String())
	}
	p.all.events = 0
	if got := p.bar(tally{}, now); !strings.HasPrefix(got, "[>") {
		t.Error(got)
	}
}
