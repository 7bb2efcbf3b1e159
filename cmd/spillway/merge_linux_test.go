// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
)

// manyFiles are the files of a merge, and what it is to give.
type manyFiles struct {
	dir     string
	writing string // the file that is being written
	broken  string // the one that is broken in its middle
	torn    string // the one whose compressed bytes are
	want    []byte
}

// makeMany makes 2,000 files: an eighth with gzip, an eighth with zstd, one with half a line at its
// end, one with NUL bytes in its middle, one with junk behind its gzip, and half lines in others.
func makeMany(t *testing.T, each int) *manyFiles {
	t.Helper()
	const count = 2000
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	m := &manyFiles{dir: t.TempDir()}
	path := func(n int) string { return filepath.Join(m.dir, fmt.Sprintf("app.%04d.log", n)) }
	m.writing, m.broken, m.torn = path(500), path(1504), path(1498)
	type line struct {
		ns   int64
		text string
	}
	var all []line
	start := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	zipper, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	for n := range count {
		var b bytes.Buffer
		now := start
		for i := range each {
			now = now.Add(time.Duration(r.IntN(2000)) * time.Millisecond)
			at := now.Format(time.RFC3339Nano)
			text := fmt.Sprintf(`{"time":%q,"tag":"app","n":%d,"i":%d,"text":"%0*d"}`, at, n, i, 1+r.IntN(150), i)
			if n%3 == 0 {
				text = fmt.Sprintf("%s process %d line %d %0*d", at, n, i, 1+r.IntN(150), i)
			}
			if n%100 == 1 && n%3 != 0 && i == each/2 {
				b.WriteString(`{"time":"2026-11` + "\n") // torn
			}
			all = append(all, line{now.UnixNano(), text})
			b.WriteString(text + "\n")
		}
		content := b.Bytes()
		switch path := path(n); {
		case path == m.writing:
			content = append(content, `{"time":"2026-11-21T02:03:04Z","n":`...)
		case path == m.broken:
			middle := bytes.LastIndexByte(content[:len(content)/2], '\n') + 1
			end := middle + bytes.IndexByte(content[middle:], '\n')
			gone := string(content[middle:end])
			clear(content[middle:end])
			all = slices.DeleteFunc(all, func(l line) bool { return l.text == gone })
		case path == m.torn:
			content = append(zipped(t, content), strings.Repeat("junk", 10)...)
		case n%8 == 2:
			content = zipped(t, content)
		case n%8 == 4:
			content = zipper.EncodeAll(content, nil)
		}
		if err := os.WriteFile(path(n), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	slices.SortStableFunc(all, func(a, b line) int { return cmp.Compare(a.ns, b.ns) })
	for _, l := range all {
		m.want = append(append(m.want, l.text...), '\n')
	}
	return m
}

func zipped(t *testing.T, content []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(content); err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// resident is the most that a process has had in memory, in bytes.
func resident(t *testing.T, pid int) int64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	kib, err := strconv.ParseInt(strings.Fields(rest + " none")[0], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return kib << 10
}

// TestMergeMany: 2,000 files give what a sort gives, in little memory, whatever some of them are.
func TestMergeMany(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	each := 100 // lines
	if raceEnabled {
		each = 20
	}
	files := makeMany(t, each)
	cmd := exec.CommandContext(t.Context(), self, "merge", filepath.Join(files.dir, "app.*.log"))
	cmd.Env = append(os.Environ(), asCommand+"=1", "GOMEMLIMIT=")
	var told bytes.Buffer
	cmd.Stderr = &told
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, len(files.want)-2<<20) // the rest does not fit into the pipe: it still runs
	if _, err := io.ReadFull(out, got[:1000]); err != nil {
		t.Fatal(err, told.String())
	}
	// All files are open: what comes now is not part of it.
	f, err := os.OpenFile(files.writing, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("1}\n" + `{"time":"2026-11-21T00:00:00Z"}` + "\n"); err != nil || f.Close() != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(out, got[1000:]); err != nil {
		t.Fatal(err, told.String())
	}
	most := resident(t, cmd.Process.Pid)
	rest, err := io.ReadAll(out)
	if err != nil {
		t.Fatal(err)
	}
	if got = append(got, rest...); !bytes.Equal(got, files.want) {
		t.Errorf("%d bytes differ from what a sort gives, %d bytes", len(got), len(files.want))
	}
	if err := cmd.Wait(); err == nil || cmd.ProcessState.ExitCode() != 1 {
		t.Errorf("it ends with %v", err)
	}
	for _, want := range []string{
		fmt.Sprintf("%q, line %d: the last line has no end yet\n", files.writing, each+1),
		fmt.Sprintf("%q, line %d: the line is torn", filepath.Join(files.dir, "app.0001.log"), each/2+1),
		fmt.Sprintf("%q, line ", files.broken),
		fmt.Sprintf("%q, line %d: gzip: invalid header\n", files.torn, each+1),
		"spillway: 17 lines or files could not be read; the others are all there\n",
	} {
		if !strings.Contains(told.String(), want) {
			t.Errorf("it does not say %q: %s", want, told.String())
		}
	}
	t.Logf("%d MB of lines, %d MB resident", len(got)/1e6, most/1e6)
	// However late garbage is collected, the heap is limited to 71e6 bytes, of which buffers need
	// less than half. The program itself has some 15e6.
	if most > 100e6 && !raceEnabled {
		t.Errorf("%d bytes are resident", most)
	}
}

// TestMergeOnATerminal: there a bar shows bytes, when the lines go elsewhere, and is gone at the
// end.
func TestMergeOnATerminal(t *testing.T) {
	t.Setenv("TERM", "xterm")
	path := filepath.Join(t.TempDir(), "app.log")
	const lines = 12 << 10
	text := strings.Repeat(`{"time":1,"x":"`+strings.Repeat("x", 1024-19)+"\"}\n", lines)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	outside, inside := openPTY(t, 100)
	var out bytes.Buffer
	if code := run(t.Context(), []string{"merge", path}, &streams{strings.NewReader(""), &out, inside}); code != 0 {
		t.Errorf("exit code %d", code)
	}
	end := readPTY(t, outside, inside)
	if !strings.Contains(end, "[======") || !strings.Contains(end, " MiB of 12 MiB") || shows(end) != "" ||
		out.String() != text {
		t.Errorf("the terminal got %q; %d bytes", end, out.Len())
	}
}

// TestMergeTextOnATerminal: there text has colours, unless somebody does not want them.
func TestMergeTextOnATerminal(t *testing.T) {
	pattern := mixed(t)
	for _, plain := range []bool{false, true} {
		outside, inside := openPTY(t, 200)
		t.Setenv("TERM", "xterm")
		t.Setenv("NO_COLOR", "")
		if plain {
			t.Setenv("NO_COLOR", "1")
		}
		var errs bytes.Buffer
		if code := run(t.Context(), []string{"merge", "--output", "text", pattern},
			&streams{strings.NewReader(""), inside, &errs}); code != 0 {
			t.Fatalf("%d, %s", code, &errs)
		}
		got := readPTY(t, outside, inside)
		if strings.Contains(got, "\x1b[32mINFO\x1b[0m") == plain ||
			strings.Contains(got, "\x1b[33mwarn\x1b[0m") == plain || strings.Contains(got, "\x1b[31mx") {
			t.Errorf("%q", got)
		}
	}
}
