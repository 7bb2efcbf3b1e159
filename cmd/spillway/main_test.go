// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spillwaylog/spillway/collector"
	"github.com/spillwaylog/spillway/internal/needs"
)

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
	}
	os.Exit(needs.Main(m))
}

// result is what one command line came to.
type result struct {
	code     int
	out, err string
}

func command(t *testing.T, in string, args ...string) result {
	t.Helper()
	var out, errs bytes.Buffer
	code := run(t.Context(), args, &streams{strings.NewReader(in), &out, &errs})
	return result{code, out.String(), errs.String()}
}

// serve runs a collector with a file output, and returns its address, its data
// directory, and a function that stops it and returns what the file holds.
func serve(t *testing.T) (url, data string, stop func() string) {
	t.Helper()
	return serveAt(t, "forward://127.0.0.1:0")
}

// serveAt is serve with an input.
func serveAt(t *testing.T, input string) (url, data string, stop func() string) {
	t.Helper()
	dir := t.TempDir()
	data = filepath.Join(dir, "data")
	out := filepath.Join(dir, "out.jsonl")
	c, err := collector.Open(&collector.Config{
		Inputs:  collector.Ends(input),
		Outputs: collector.Ends("file://" + filepath.ToSlash(out)),
		Dir:     data,
		Log:     slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	stop = func() string {
		t.Helper()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		done <- nil
		b, err := os.ReadFile(out)
		if err != nil {
			t.Error(err)
		}
		return string(b)
	}
	t.Cleanup(func() { stop() })
	return "forward://" + c.Addrs()[0].String(), data, stop
}

func TestSend(t *testing.T) {
	url, data, stop := serve(t)
	in := `{"user":"ada","n":18446744073709551615,"deep":{"a":[1.5,null,true]}}` + "\n" +
		"plain text \xff\r\n" +
		"\n" +
		`{"not": "an object"` + "\n" +
		`{"two":1} {"objects":2}` + "\n" +
		" \t" + `{ "indented": true } ` + "\n" +
		" \n" +
		"no newline at the end"
	got := command(t, in, "send", "--to", url, "--tag", "app.web", "--field", "line")
	if got.code != 0 || got.out != "7 acked\n" || got.err != "" {
		t.Fatalf("%+v", got)
	}
	t.Run("journal", func(t *testing.T) { testJournal(t, data) })
	want := []string{
		`"tag":"app.web","user":"ada","n":18446744073709551615,"deep":{"a":[1.5,null,true]}}`,
		`"tag":"app.web","line":"plain text ` + "\ufffd" + `"}`,
		`"tag":"app.web","line":"{\"not\": \"an object\""}`,
		`"tag":"app.web","line":"{\"two\":1} {\"objects\":2}"}`,
		`"tag":"app.web","indented":true}`,
		`"tag":"app.web","line":" "}`,
		`"tag":"app.web","line":"no newline at the end"}`,
	}
	lines := strings.Split(strings.TrimSuffix(stop(), "\n"), "\n")
	if len(lines) != len(want) {
		t.Fatalf("%d lines, want %d: %q", len(lines), len(want), lines)
	}
	for i, line := range lines {
		if _, rest, _ := strings.Cut(line, ","); rest != want[i] {
			t.Errorf("line %d is %s, want %s", i, rest, want[i])
		}
	}
}

// journalLs is the row of the file output in what journal ls prints: seven events behind, or none
// once they are out.
var journalLs = regexp.MustCompile(`(?m)^file://\S+/out\.jsonl +[0-9a-f/]+ +[70] +\d+ *$`)

// testJournal looks into a data directory that is in use.
func testJournal(t *testing.T, data string) {
	if got := command(t, "", "journal", "ls", data); got.code != 0 || !strings.Contains(got.out, "seg-") ||
		!journalLs.MatchString(got.out) {
		t.Errorf("ls: %+v", got)
	}
	if got := command(t, "", "journal", "cat", data); got.code != 0 || strings.Count(got.out, "\n") != 7 ||
		!strings.Contains(got.out, `"user":"ada"`) {
		t.Errorf("cat: %+v", got)
	}
	if got := command(t, "", "journal", "verify", filepath.Join(data, "journal")); got.code != 0 ||
		!strings.Contains(got.out, " records, ") {
		t.Errorf("verify: %+v", got)
	}
	for _, what := range []string{"ls", "cat", "verify"} {
		var errs bytes.Buffer
		code := run(t.Context(), []string{"journal", what, data}, &streams{strings.NewReader(""), full{}, &errs})
		if code != 1 || strings.Count(errs.String(), errFull.Error()) != 1 {
			t.Errorf("%s, where nothing can be written: %d, %s", what, code, &errs)
		}
	}
}

// full is an output that takes nothing.
type full struct{}

var errFull = errors.New("no room at all")

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestVerifyFindsDamage(t *testing.T) {
	url, data, stop := serve(t)
	for i := range 3 {
		if got := command(t, fmt.Sprintf("event %d\n", i), "send", "--to", url); got.code != 0 {
			t.Fatalf("%+v", got)
		}
	}
	stop()
	segments, err := filepath.Glob(filepath.Join(data, "journal", "seg-*"))
	if err != nil || len(segments) == 0 {
		t.Fatal(segments, err)
	}
	b, err := os.ReadFile(segments[0])
	if err != nil {
		t.Fatal(err)
	}
	i := bytes.LastIndex(b, []byte("event 0")) // the first one may be a copy in a tail slot
	if i < 0 {
		t.Fatal("the event is not in the journal")
	}
	b[i] ^= 1
	if err := os.WriteFile(segments[0], b, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := command(t, "", "journal", "verify", data); got.code != 1 || !strings.Contains(got.out, segments[0]) {
		t.Errorf("%+v", got)
	}
}

func TestSendSaysWhatIsNotAcked(t *testing.T) {
	got := command(t, "one\ntwo\n", "send", "--to", "forward+unix://"+filepath.Join(t.TempDir(), "none"), "--timeout",
		"50ms")
	if got.code != 1 || !strings.HasPrefix(got.out, "0 acked") || !strings.Contains(got.err, "not acked") {
		t.Errorf("%+v", got)
	}
}

// TestInterrupted: who is interrupted says by what.
func TestInterrupted(t *testing.T) {
	url, _, _ := serve(t)
	if got := command(t, "one\n", "send", "--to", url); got.code != 0 {
		t.Fatalf("%+v", got)
	}
	never, w := io.Pipe()
	defer w.Close()
	for _, args := range [][]string{{"send", "--to", url}, {"bench", "forward", "--to", url}} {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errors.New("terminated by the test"))
		var out, errs bytes.Buffer
		if code := run(ctx, args, &streams{never, &out, &errs}); code != 1 ||
			!strings.HasSuffix(errs.String(), "canceled: terminated by the test\n") {
			t.Errorf("%q: %d, %s", args, code, &errs)
		}
	}
}

func TestExitCodes(t *testing.T) {
	for _, tc := range []struct {
		args []string
		code int
		err  string
	}{
		{[]string{"version"}, 0, ""},
		{[]string{"--help"}, 0, ""},
		{nil, 2, "expected"},
		{[]string{"fly"}, 2, "fly"},
		{[]string{"serve", "--ack", "maybe"}, 2, "synced"},
		{[]string{"serve", "--memory", "much"}, 2, "much"},
		{[]string{"serve", "--journal-size", "255KiB", "--data", "/proc/none"}, 2, "--journal-size"},
		{[]string{"serve", "--to", "a b=stdout:", "--data", "/proc/none"}, 2, `--to: the name "a b"`},
		{
			[]string{"serve", "--to", "a=stdout:", "--to", "A=discard:", "--data", "/proc/none"},
			2,
			`the name "A" is given twice`,
		},
		{[]string{"tail", "--tag", "{a"}, 2, "--tag: braces"},
		{[]string{"tail", "--where", "x =="}, 2, "--where:1:"},
		{[]string{"tail", "--rate", "20000"}, 2, "--rate: it is 1 to"},
		{[]string{"tail", "--rate", "0"}, 2, "--rate: it is 1 to"},
		{[]string{"serve", "--data", ""}, 2, "--data: it is empty"},
		{[]string{"serve", "--max-event", "65535", "--data", "/proc/none"}, 2, "--max-event: 65535 bytes"},
		{
			[]string{"serve", "--journal-size", "256KiB", "--data", "/proc/none", "--listen", "forward://127.0.0.1:0"},
			1,
			"/proc/none",
		},
		{[]string{"send", "--timeout", "0"}, 2, "--timeout"},
		{
			[]string{"bench", "forward", "--rate", "100", "--to", "forward://127.0.0.1:1"},
			2,
			"take more time, smaller messages or fewer connections",
		},
		{[]string{"journal", "ls", "/does/not/exist"}, 2, "/does/not/exist"},
		{[]string{"journal", "ls", "."}, 1, "no journal"},
		{[]string{"send", "--to", "kafka://h"}, 2, "known are forward, forward+tls, forward+unix; for example"},
		{[]string{"send", "--to", "stdout:"}, 2, "cannot send there"},
		{[]string{"serve", "--to", "file://x/y", "--data", "/proc/none"}, 2, "file:"},
		{[]string{"serve", "--to", "kafka://h", "--data", "/proc/none"}, 2, "kafka"},
		{[]string{"serve", "--to", "stderr:", "--data", "/proc/none"}, 2, "no output of this kind"},
		{
			[]string{"serve", "--to", "file:a", "--to", "file:./a", "--data", "/proc/none"},
			2,
			"file:./a: this output is given twice",
		},
		{
			[]string{"serve", "--listen", "forward://127.0.0.1:0", "--to", "discard:", "--data", "/proc/none"},
			1,
			"/proc/none",
		},
	} {
		t.Run(strings.Join(tc.args, " "), func(t *testing.T) {
			got := command(t, "", tc.args...)
			if got.code != tc.code || !strings.Contains(got.err, tc.err) {
				t.Errorf("%+v, want code %d and %q", got, tc.code, tc.err)
			}
		})
	}
}
