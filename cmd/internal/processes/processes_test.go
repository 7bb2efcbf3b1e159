// SPDX-License-Identifier: Apache-2.0

package processes

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

// The test program is each of the processes, too.
func TestMain(m *testing.M) {
	if len(os.Args) == 6 && os.Args[1] == "write" {
		number, _ := strconv.Atoi(os.Args[3])
		lines, _ := strconv.Atoi(os.Args[4])
		if err := Write(os.Args[2], number, lines, os.Args[5]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func options(t *testing.T, ways ...string) *Options {
	t.Helper()
	return &Options{
		Processes: 2, Lines: 50, Rounds: 2, Ways: ways, Dir: t.TempDir(),
		Writer: func(ctx context.Context, way string, number, lines int, dir string) *exec.Cmd {
			return exec.CommandContext(ctx, os.Args[0], "write", way, strconv.Itoa(number), strconv.Itoa(lines), dir)
		},
	}
}

// Each way but the collector's, which needs the command: all lines arrive.
func TestRun(t *testing.T) {
	o := options(t, "lock", "connect", "socket", "open", "file", "json", "spillway", "shared-append", "shared-lock")
	told := 0
	o.Progress = func(p Progress) {
		if told++; !strings.Contains(p.String(), " of 18: ") {
			t.Error(p)
		}
	}
	r, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Results) != 9 || told < 18 {
		t.Fatalf("%d results, told %d times", len(r.Results), told)
	}
	for _, x := range r.Results {
		late := x.Found.Late
		if x.Way == "connect" { // threads of the server read the connections, in any order
			x.Found.Late = 0
		}
		if want := (Found{Lines: 2 * 2 * 50}); x.Found != want {
			t.Errorf("%s: %+v, %d late", x.Way, x.Found, late)
		}
		if x.Seconds <= 0 || len(x.Walls) != 2 || len(x.CPUs) != 2 {
			t.Errorf("%s: %+v", x.Way, x)
		}
	}
	left, err := os.ReadDir(o.Dir)
	if err != nil || len(left) != 0 {
		t.Error("left in the folder:", left, err)
	}
	for name, write := range map[string]func(io.Writer) error{
		"table": r.WriteTable, "json": r.WriteJSON,
		"svg": r.WriteSVG,
	} {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			t.Error(name, err)
		}
		switch name {
		case "table":
			if n := strings.Count(b.String(), "#"); n < 9 || !strings.Contains(b.String(), "all, in order") {
				t.Errorf("a table without bars:\n%s", b.String())
			}
		case "json":
			var again Report
			if err := json.Unmarshal(b.Bytes(), &again); err != nil || len(again.Results) != 9 ||
				again.Results[3].Walls[1] != r.Results[3].Walls[1] {
				t.Error(err, again)
			}
		case "svg":
			if n := strings.Count(b.String(), `class="theirs"`) + strings.Count(b.String(), `class="ours"`); n != 9 {
				t.Errorf("%d bars", n)
			}
			if err := xml.Unmarshal(b.Bytes(), new(struct{})); err != nil {
				t.Error(err)
			}
		}
	}
}

// A process that fails is told with what it said, and what was measured before stays.
func TestRunFails(t *testing.T) {
	o := options(t, "file", "json")
	o.Rounds = 1
	writer := o.Writer
	o.Writer = func(ctx context.Context, way string, number, lines int, dir string) *exec.Cmd {
		if way == "json" && number == 1 {
			way = "nonsense"
		}
		return writer(ctx, way, number, lines, dir)
	}
	r, err := Run(t.Context(), o)
	if err == nil || !strings.Contains(err.Error(), `json: exit status 1: no way "nonsense"`) {
		t.Error(err)
	}
	if !r.Measured() || len(r.measured()) != 1 {
		t.Errorf("%+v", r)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Run(ctx, options(t, "file")); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, err := Run(ctx, &Options{}); err == nil {
		t.Error("no processes, no error")
	}
}

func TestCheck(t *testing.T) {
	text := "LOGGED #0 with 0\n" +
		`{"time":"2026-11-25T14:20:41.929190797Z","tag":"bench","level":"INFO","msg":"LOGGED #2 with 0"}` + "\n" +
		"LOGGED #1 with 0\n" + // late
		"LOGGED #1 with 0\n" + // repeated, and not late again
		"LOGLOGGED #0 with 1\n" + // torn, and so are those that follow
		"GED #3 with 1\n" +
		`{"time":"2026-11-25T14:20:41.929190797Z","tag":"bench","level":"INFO","msg":"LOGGED #1 with 1"` + "\n" +
		"LOGGED #9 with 1\n" +
		"LOGGED #0 with 9\n" +
		"LOGGED #-1 with 0\n" +
		strings.Repeat("x", 100<<10) + "\n" +
		"LOGGED #2 with 1"
	f, err := check([]io.Reader{strings.NewReader(text[:40]), strings.NewReader(text[40:])}, 2, 3)
	if err != nil {
		t.Fatal(err)
	}
	// The first reader's last line and the second's first are halves of one, and a long line that
	// is none counts for each buffer of it.
	if f.Lines != 3 || f.Missing != 4 || f.Repeated != 1 || f.Late != 0 || f.Torn < 9 {
		t.Errorf("%+v", f)
	}
	f, err = check([]io.Reader{strings.NewReader(text)}, 2, 3)
	if err != nil || f.Lines != 4 || f.Missing != 3 || f.Repeated != 1 || f.Late != 1 || f.Torn < 8 {
		t.Errorf("%+v, %v", f, err)
	}
	bad := errors.New("bad disk")
	if _, err := check([]io.Reader{io.MultiReader(strings.NewReader("LOGGED #0 with 0\nLOG"), failing{bad})}, 1,
		1); !errors.Is(err, bad) {
		t.Error(err)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }
