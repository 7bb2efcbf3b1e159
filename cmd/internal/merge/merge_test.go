// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
)

type madeLine struct {
	time time.Time
	tag  string
	text string
}

// packed is content as a file has it: plain, gzip or zstd.
func packed(t testing.TB, how int, content []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	var w io.WriteCloser
	switch how {
	case 0:
		return content
	case 1:
		w = gzip.NewWriter(&b)
	default:
		var err error
		if w, err = zstd.NewWriter(&b, zstd.WithEncoderConcurrency(1)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func put(t testing.TB, dir string, n int, content []byte) string {
	t.Helper()
	path := filepath.Join(dir, fmt.Sprintf("app.%04d.jsonl", n))
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestSort: the result is what a stable sort of all lines gives, whatever the files are.
func TestSort(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 1))
	for round := range 12 {
		dir := t.TempDir()
		var all []madeLine
		var paths []string
		slack := time.Duration(r.IntN(2)*r.IntN(50)) * time.Millisecond
		for n := range r.IntN(30) {
			var content bytes.Buffer
			now := time.Unix(1795226584, 0).UTC()
			for i := range r.IntN(60) {
				now = now.Add(time.Duration(r.IntN(40)*r.IntN(2)) * time.Millisecond)
				l := madeLine{
					time: now.Add(-time.Duration(r.Int64N(int64(slack) + 1))),
					tag:  fmt.Sprint("t", r.IntN(3)),
				}
				text := l.time.Format(time.RFC3339Nano)
				if r.IntN(3) == 0 {
					text = l.time.In(time.FixedZone("", 9*3600)).Format(time.RFC3339Nano)
				}
				l.text = fmt.Sprintf(`{"time":%q,"tag":%q,"n":%d,"i":%d,"x":%q}`, text, l.tag, n, i,
					strings.Repeat("ab", r.IntN(20)))
				if r.IntN(50) == 0 {
					l.text = fmt.Sprintf(`{"long":%q,`, strings.Repeat("}", r.IntN(40<<10))) + l.text[1:]
				}
				all = append(all, l)
				content.WriteString(l.text + "\n")
				if r.IntN(20) == 0 {
					content.WriteString(" \r\n")
				}
			}
			paths = append(paths, put(t, dir, n, packed(t, r.IntN(3), content.Bytes())))
		}
		o := &Options{
			Slack: slack, Memory: []int{1 << 24, 1 << 16, 1 << 12}[r.IntN(3)],
			Warn: func(path string, line int, err error) { t.Error(path, line, err) },
		}
		if r.IntN(2) == 0 {
			o.Tag = "t1"
		}
		if r.IntN(2) == 0 {
			o.Since, o.Until = time.Unix(1795226584, 1e8), time.Unix(1795226584, 5e8)
		}
		slices.SortStableFunc(all, func(a, b madeLine) int { return a.time.Compare(b.time) })
		var want strings.Builder
		for _, l := range all {
			if (o.Tag == "" || o.Tag == l.tag) &&
				(o.Since.IsZero() || !l.time.Before(o.Since) && l.time.Before(o.Until)) {
				want.WriteString(l.text + "\n")
			}
		}
		var got strings.Builder
		res, err := Run(t.Context(), &got, paths, o)
		if err != nil || got.String() != want.String() || res.Late+res.Broken != 0 ||
			res.Written+res.Left != int64(len(all)) {
			t.Fatalf("seed %d, round %d: %+v, %v; %d bytes, want %d", seed, round, res, err, got.Len(), want.Len())
		}
	}
}

// TestContinued: lines that continue another stay behind it, whatever the formats, the slack, and
// the memory are.
func TestContinued(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 1))
	for round := range 20 {
		dir := t.TempDir()
		slack := time.Duration(r.IntN(2)*(1+r.IntN(5))) * time.Second
		var all []madeLine
		var paths []string
		for n := range 1 + r.IntN(9) {
			var content strings.Builder
			now := time.Unix(1763690584, 0).UTC()
			form := []string{
				"2006-01-02T15:04:05Z07:00 ", "time=2006-01-02T15:04:05Z07:00 ",
				"[02/Jan/2006:15:04:05 -0700] ",
			}[r.IntN(3)]
			for i := range r.IntN(40) {
				now = now.Add(time.Duration(r.IntN(3)) * time.Second)
				l := madeLine{time: now.Add(-time.Duration(r.Int64N(int64(slack/time.Second)+1)) * time.Second)}
				l.text = l.time.Format(form) + fmt.Sprintf("n=%d i=%d\n", n, i)
				for c := range r.IntN(4) {
					l.text += []string{"\tat line ", "", "Caused by: "}[r.IntN(3)] + strings.Repeat(fmt.Sprint(c),
						r.IntN(100)) + "\n"
				}
				all = append(all, l)
				content.WriteString(l.text)
			}
			paths = append(paths, put(t, dir, n, packed(t, r.IntN(3), []byte(content.String()))))
		}
		slices.SortStableFunc(all, func(a, b madeLine) int { return a.time.Compare(b.time) })
		var want, got strings.Builder
		for _, l := range all {
			want.WriteString(l.text)
		}
		res, err := Run(t.Context(), &got, paths, &Options{Slack: slack, Memory: []int{1 << 24, 1 << 12}[r.IntN(2)]})
		if err != nil || got.String() != want.String() || res.Late+res.Broken != 0 {
			t.Fatalf("seed %d, round %d: %+v, %v; %q, want %q", seed, round, res, err, got.String(), want.String())
		}
	}
}

// TestPzstd: a frame that is skipped may stand first.
func TestPzstd(t *testing.T) {
	content := append([]byte{0x50, 0x2a, 0x4d, 0x18, 4, 0, 0, 0, 1, 2, 3, 4}, packed(t, 2, []byte("{\"time\":1}\n"))...)
	var got strings.Builder
	path := put(t, t.TempDir(), 0, content)
	if res, err := Run(t.Context(), &got, []string{path}, &Options{}); err != nil || res.Broken > 0 ||
		got.String() != "{\"time\":1}\n" {
		t.Errorf("%q, %+v, %v", got.String(), res, err)
	}
}

// TestBroken: what cannot be read is told with its file and line, and costs nothing else.
func TestBroken(t *testing.T) {
	dir := t.TempDir()
	line := func(n int) string { return fmt.Sprintf(`{"time":%d,"n":%d}`, n, n) }
	long := `{"time":2,"x":"` + strings.Repeat("x", 2*MaxLine) + `"}`
	var many strings.Builder
	for n := range 2000 {
		many.WriteString(line(1000+n) + "\n")
	}
	cut := packed(t, 1, []byte(many.String()))
	paths := []string{
		put(t, dir, 0, []byte(line(1)+"\n"+`{"time":2,"n":`+"\n"+line(3)+"\nno JSON }\n"+line(5)+"\n"+`{"time":6`)),
		put(t, dir, 1, []byte(line(2)+"\n"+long+"\n"+line(4)+"\n\x00\xff\n"+line(9))),
		put(t, dir, 2, cut[:len(cut)-20]),
		filepath.Join(dir, "none"),
		put(t, dir, 3, []byte{0x1f, 0x8b, 0, 0}),
		put(t, dir, 4, nil),
		dir,
	}
	var told []string
	var got strings.Builder
	res, err := Run(t.Context(), &got, paths, &Options{Warn: func(path string, line int, err error) {
		told = append(told, fmt.Sprintf("%s:%d", filepath.Base(path), line))
	}})
	if err != nil {
		t.Fatal(err)
	}
	out := got.String()
	for i, want := range []int{1, 2, 3, 4, 5, 9, 1000, 1001} {
		head, rest, _ := strings.Cut(out, "\n")
		if head != line(want) {
			t.Errorf("line %d is %s, want %s", i, head, line(want))
		}
		out = rest
	}
	whole := len(told)
	told = slices.DeleteFunc(told, func(s string) bool { return strings.HasPrefix(s, "app.0002") })
	// Its end, and a torn line before.
	if cuts := whole - len(told); cuts < 1 || cuts > 2 || res.Broken != int64(whole) {
		t.Errorf("%d, of which %d are those of the file that is cut", res.Broken, cuts)
	}
	slices.Sort(told)
	want := []string{
		"app.0000.jsonl:2", "app.0000.jsonl:4", "app.0000.jsonl:6", "app.0001.jsonl:2", "app.0001.jsonl:4",
		"app.0003.jsonl:1", "none:0", filepath.Base(dir) + ":0",
	}
	slices.Sort(want)
	if !slices.Equal(told, want) {
		t.Errorf("told are %q, want %q", told, want)
	}
}

// TestInterrupt: what is read in vain, lines of other tags and blank ones, ends with the context.
func TestInterrupt(t *testing.T) {
	enough := errors.New("enough")
	for _, line := range []string{"\n", "{\"time\":1,\"tag\":\"a\"}\n", strings.Repeat("\x00", 1000)} {
		ctx, cancel := context.WithCancelCause(t.Context())
		path := put(t, t.TempDir(), 0, []byte(strings.Repeat(line, 12<<20/len(line))))
		o := &Options{Tag: "b", Progress: func(int64, int64) { cancel(enough) }}
		if res, err := Run(ctx, io.Discard, []string{path}, o); !errors.Is(err, enough) || res.Broken > 0 {
			t.Errorf("%.10q: %+v, %v", line, res, err)
		}
	}
}

// peak is a writer that knows the most of the heap that was in use when it was called.
type peak struct {
	lines, calls int
	most         uint64
}

func (p *peak) Write(b []byte) (int, error) {
	if p.calls++; p.calls%16 == 1 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		p.most = max(p.most, m.HeapInuse+m.StackInuse)
	}
	p.lines += bytes.Count(b, []byte{'\n'})
	return len(b), nil
}

// TestMany: 2,000 files, of which a quarter is compressed, need little memory and few descriptors.
func TestMany(t *testing.T) {
	const files, each = 2000, 60
	dir := t.TempDir()
	var paths []string
	for n := range files {
		var content bytes.Buffer
		for i := range each {
			fmt.Fprintf(&content, `{"time":%d.%03d,"tag":"app","n":%d,"text":"%0100d"}`+"\n", i, n%1000, n, i)
		}
		how := 0
		if n%4 == 0 {
			how = 1 + n/4%2
		}
		paths = append(paths, put(t, dir, n, packed(t, how, content.Bytes())))
	}
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(68 << 20)) // as the command has it
	var p peak
	res, err := Run(t.Context(), &p, paths, &Options{})
	if err != nil || p.lines != files*each || res.Written != files*each || res.Late+res.Broken != 0 {
		t.Errorf("%+v, %v; %d lines", res, err, p.lines)
	}
	t.Logf("at most %d MB in use", p.most>>20)
	if p.most > 100e6 {
		t.Errorf("%d bytes are in use", p.most)
	}
}

func BenchmarkRun(b *testing.B) {
	dir := b.TempDir()
	var paths []string
	var size int64
	for n := range 20 {
		var content bytes.Buffer
		for i := range 20000 {
			fmt.Fprintf(&content, `{"time":"2026-11-21T02:%02d:%02d.%03d%03d000Z","tag":"app.web","level":"INFO",`+
				`"msg":"request served","method":"GET","path":"/v1/things/%d","status":200,"took":0.00123,"n":%d}`+"\n",
				i/6000, i/100%60, i%100*10, n, i, n)
		}
		size += int64(content.Len())
		paths = append(paths, put(b, dir, n, content.Bytes()))
	}
	b.SetBytes(size)
	b.ReportAllocs()
	for b.Loop() {
		if res, err := Run(b.Context(), io.Discard, paths, &Options{}); err != nil || res.Written != 400000 ||
			res.Late > 0 {
			b.Fatal(res, err)
		}
	}
}

// BenchmarkSlack: some lines come later than they should.
func BenchmarkSlack(b *testing.B) {
	dir := b.TempDir()
	var paths []string
	var size int64
	for n := range 20 {
		var content bytes.Buffer
		for i := range 20000 {
			at := time.Unix(1795226584, int64(i*1e7+n)).Add(-time.Duration(i%100/99) * time.Second)
			fmt.Fprintf(&content, `{"time":%q,"tag":"app.web","level":"INFO","msg":"request served","method":"GET",`+
				`"path":"/v1/things/%d","status":200,"took":0.00123,"n":%d}`+"\n", at.UTC().Format(time.RFC3339Nano), i,
				n)
		}
		size += int64(content.Len())
		paths = append(paths, put(b, dir, n, content.Bytes()))
	}
	b.SetBytes(size)
	b.ReportAllocs()
	for b.Loop() {
		if res, err := Run(b.Context(), io.Discard, paths, &Options{Slack: time.Second}); err != nil ||
			res.Written != 400000 || res.Late > 0 {
			b.Fatal(res, err)
		}
	}
}
