// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/urls"
	"github.com/spillwaylog/spillway/msgpack"
)

// collected is a Sink that keeps what it gets as JSON lines.
type collected struct {
	lines []string
	calls int
}

func (c *collected) Store(_ context.Context, chunks []*forward.Chunk, _ []byte) (func(context.Context) error, error) {
	c.calls++
	for _, ch := range chunks {
		entries := forward.ReadEntries(ch.Entries)
		n := 0
		for e, ok := entries.Next(); ok; e, ok = entries.Next() {
			line, _, err := msgpack.AppendJSON([]byte(ch.Tag+" "), e.Record, nil)
			if err != nil {
				return nil, err
			}
			c.lines = append(c.lines, string(line))
			n++
		}
		if entries.Err() != nil || n != ch.Events {
			return nil, fmt.Errorf("%d entries of %d: %w", n, ch.Events, entries.Err())
		}
	}
	return nil, nil
}

func (c *collected) Position() []byte { return nil }

// lineInputOf is an input that listens nowhere.
func lineInputOf(t testing.TB, url string, memory int64) *lineInput {
	t.Helper()
	u, err := urls.Parse(url)
	if err != nil {
		t.Fatal(err)
	}
	l, err := planLines(u)
	if err != nil {
		t.Fatal(err)
	}
	l.reporter, l.memory = newReporter(logTo(io.Discard)), &lineMemory{limit: memory}
	return l
}

func TestLineStream(t *testing.T) {
	long := strings.Repeat("x", 100)
	for name, tt := range map[string]struct {
		url, text string
		want      []string
	}{
		"text": {
			"stdin:?tag=app", "one\r\n\n two \x00\n \t \r\n\r\r\nthree\n  ",
			[]string{`app {"message":"one"}`, `app {"message":" two \u0000"}`, `app {"message":"three"}`},
		},
		"json": {
			"stdin:?parse=json&tag_key=t", `{"a":1,"t":"x.y"}` + "\n" + `{"a":2,"t":"x.y"}` + "\nno json\n" +
				`{"a":3,"t":""}` + "\n",
			[]string{`x.y {"a":1}`, `x.y {"a":2}`, `lines {"message":"no json"}`, `lines {"a":3,"t":""}`},
		},
		"logfmt": {"stdin:?parse=logfmt", "a=1 b=\"c d\"\n", []string{`lines {"a":"1","b":"c d"}`}},
		"cut": {
			"stdin:?max_line=16&parse=json", long + "\nshort\n" + long + long,
			[]string{
				`lines {"message":"` + long[:16] + `","truncated":true}`, `lines {"message":"short"}`,
				`lines {"message":"` + long[:16] + `","truncated":true}`,
			},
		},
		"exact": {"stdin:?max_line=16", long[:16] + "\n" + long[:17] + "\n", []string{
			`lines {"message":"` + long[:16] + `"}`, `lines {"message":"` + long[:16] + `","truncated":true}`,
		}},
		"peer": {
			"lines://h:1?parse=json&address_key=from", `{"a":1}` + "\n" + `{` + manyMembers(15) + `}` + "\n",
			[]string{
				`lines {"a":1,"from":"192.0.2.1"}`, `lines {` + manyMembers(15) + `,"from":"192.0.2.1"}`,
			},
		},
		"forged peer": {
			"lines://h:1?parse=json&address_key=from",
			`{"from":"10.9.9.9","m":1,"fr\u006fm":{"a":1},"in":{"from":2}}` + "\n" + `{"from":[]}` + "\n" +
				`{` + manyMembers(15) + `,"from":null}` + "\n" + `{"from":1,` + "\n",
			[]string{
				`lines {"m":1,"in":{"from":2},"from":"192.0.2.1"}`, `lines {"from":"192.0.2.1"}`,
				`lines {` + manyMembers(15) + `,"from":"192.0.2.1"}`,
				`lines {"message":"{\"from\":1,","from":"192.0.2.1"}`,
			},
		},
		"forged peer, logfmt": {
			"lines://h:1?parse=logfmt&address_key=from", "from=10.9.9.9 m=1 from=\"a b\" from\nfrom=1\nfrom\n",
			[]string{
				`lines {"m":"1","from":"192.0.2.1"}`, `lines {"from":"192.0.2.1"}`,
				`lines {"message":"from","from":"192.0.2.1"}`,
			},
		},
		"forged peer, time and tag": {
			"lines://h:1?parse=json&address_key=time&tag_key=time_&time_key=time",
			`{"time":"2026-11-21T02:03:04Z","time":"2026-11-21T02:03:04Z"}` + "\n" + `{"time":"noon"}` + "\n",
			[]string{`lines {"time":"192.0.2.1"}`, `lines {"time":"192.0.2.1"}`},
		},
	} {
		for _, r := range []io.Reader{
			strings.NewReader(tt.text), iotest.OneByteReader(strings.NewReader(tt.text)),
			iotest.DataErrReader(strings.NewReader(tt.text)),
		} {
			l := lineInputOf(t, tt.url, 1<<20)
			var got collected
			if err := newLineStream(l, "192.0.2.1").run(t.Context(), r, &got); err != nil ||
				!slices.Equal(got.lines, tt.want) {
				t.Errorf("%s: %q, %v, want %q", name, got.lines, err, tt.want)
			}
			if l.memory.held.Load() != 0 {
				t.Errorf("%s: %d bytes still held", name, l.memory.held.Load())
			}
		}
	}
}

// until polls for what a healthy machine brings at once.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(2 * time.Minute); !is(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
	}
}

func manyMembers(n int) string {
	members := make([]string, n)
	for i := range members {
		members[i] = fmt.Sprintf(`"k%d":%d`, i, i)
	}
	return strings.Join(members, ",")
}

// TestLineStreamMemory: a line that is longer than there is memory for is cut, and what comes
// behind it is whole.
func TestLineStreamMemory(t *testing.T) {
	l := lineInputOf(t, "stdin:?max_line=1MiB", 100_000)
	var got collected
	text := strings.Repeat("y", 3<<20) + "\nbehind\n"
	if err := newLineStream(l, "").run(t.Context(), strings.NewReader(text), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.lines) != 2 || !strings.HasSuffix(got.lines[0], `y","truncated":true}`) || len(got.lines[0]) > 110_000 ||
		got.lines[1] != `lines {"message":"behind"}` {
		t.Errorf("%d lines, %.100q", len(got.lines), got.lines)
	}
}

// TestLineStreamGivesBack: what a long line took is not held while the connection is silent.
func TestLineStreamGivesBack(t *testing.T) {
	l := lineInputOf(t, "stdin:?max_line=4MiB", 100<<20)
	var got collected
	silent := false
	text := strings.Repeat("y", 3<<20) + "\nbehind\n" + "begun"
	read := strings.NewReader(text)
	err := newLineStream(l, "").run(t.Context(), readerFunc(func(p []byte) (int, error) {
		n, err := read.Read(p)
		if err != nil {
			silent = true
			if held := l.memory.held.Load(); held > streamLarge {
				t.Errorf("%d bytes are held", held)
			}
		}
		return n, err
	}), &got)
	if err != nil || !silent {
		t.Fatal(err, silent)
	}
	if len(got.lines) != 3 || len(got.lines[0]) < 3<<20 || got.lines[2] != `lines {"message":"begun"}` {
		t.Errorf("%d lines, %.100q", len(got.lines), got.lines)
	}
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// TestLinesBad: what is wrong with a line is told with its peer, and counted, and the lines around
// it are whole.
func TestLinesBad(t *testing.T) {
	const cut, text = "cut, and marked", "kept as text"
	deep := strings.Repeat(`{"a":`, 10_000) + "1" + strings.Repeat("}", 10_000)
	for name, tt := range map[string]struct {
		parse, line, want string
		cut, broken       int64
		fate              string
	}{
		"broken":          {"json", `{"a":1,}`, `{"message":"{\"a\":1,}"}`, 0, 1, text},
		"without its end": {"json", `{"a":1`, `{"message":"{\"a\":1"}`, 0, 1, text},
		"two":             {"json", `{"a":1}{"a":2}`, `{"message":"{\"a\":1}{\"a\":2}"}`, 0, 1, text},
		"text": {
			"json", `Exception in thread "main"`, `{"message":"Exception in thread \"main\""}`, 0,
			0, "",
		},
		"10,000 deep": {"json", deep, `{"message":"` + strings.ReplaceAll(deep, `"`, `\"`) + `"}`, 0, 1, text},
		"10 MB long": {
			"json", `{"a":"` + strings.Repeat("x", 10<<20) + `"}`,
			`{"message":"{\"a\":\"` + strings.Repeat("x", 64<<10-6) + `","truncated":true}`, 1, 0, cut,
		},
		"100 MB long, as text": {
			"text", strings.Repeat("x", 100_000_000),
			`{"message":"` + strings.Repeat("x", 64<<10) + `","truncated":true}`, 1, 0, cut,
		},
	} {
		var log bytes.Buffer
		l := lineInputOf(t, "lines://h:1?parse="+tt.parse, 1<<20)
		l.reporter, l.name = newReporter(logTo(&log)), "in"
		var got collected
		if err := newLineStream(l, "192.0.2.1").run(t.Context(), strings.NewReader("before\n"+tt.line+"\nbehind\n"),
			&got); err != nil {
			t.Fatal(err)
		}
		want := []string{`lines {"message":"before"}`, "lines " + tt.want, `lines {"message":"behind"}`}
		if !slices.Equal(got.lines, want) {
			t.Errorf("%s: %.500q", name, got.lines)
		}
		s := l.Stats()
		if s.Cut != tt.cut || s.Unparsed != tt.broken {
			t.Errorf("%s: %+v", name, s)
		}
		told := strings.Count(log.String(), "peer=192.0.2.1 input=in fate=\""+tt.fate)
		if strings.Count(log.String(), "\n") != told || told != int(tt.cut+tt.broken) {
			t.Errorf("%s: %s", name, &log)
		}
	}
}

func TestLinesURL(t *testing.T) {
	for url, want := range map[string]string{
		"lines://a:1,b:1":                              "listens on one address",
		"stdin:?parse=xml":                             "not one of text, json, logfmt",
		"stdin:?max_line=8":                            "max_line= is from",
		"stdin:?max_line=65MiB":                        "max_line= is from",
		"stdin:?tag_key=t":                             "text has no keys",
		"stdin:?parse=json&time_format=Never":          "time format",
		"stdin:?parse=json&tag_key=time":               "stands for two things",
		"stdin:?address_key=a":                         "has no address",
		"lines://h:1?address_key=message":              "a key of lines that are text",
		"lines://h:1?parse=json&address_key=truncated": "a key of lines that are text",
		"stdin:?nothing=1":                             "nothing",
		"lines://h:1?tag=" + strings.Repeat("t", 1025): "a tag has at most",
	} {
		c, err := Open(&Config{Dir: t.TempDir(), Inputs: Ends(url), Outputs: Ends("discard:")})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", url, err, want)
		}
		if c != nil {
			_ = c.Close()
		}
	}
	if _, err := Open(&Config{
		Dir: t.TempDir(), Inputs: Ends("stdin:", "stdin:?parse=json"),
		Outputs: Ends("discard:"),
	}); err == nil || !strings.Contains(err.Error(), "given twice") {
		t.Error(err)
	}
}

// TestStdin: when standard input has ended all of it is handed on, and Run returns.
func TestStdin(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "out.jsonl")
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	c, err := Open(&Config{
		Dir: filepath.Join(dir, "data"), Inputs: Ends("stdin:?tag=app"),
		Outputs: Ends(fileURL(out) + "?time_key=-&tag_key=-"),
		Stdin:   r, Log: logTo(testWriter{t}), Drain: time.Nanosecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	ran := make(chan error, 1)
	go func() { ran <- c.Run(t.Context()) }()
	var want strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(w, "line %d\n", i)
		fmt.Fprintf(&want, "{\"message\":\"line %d\"}\n", i)
	}
	_, _ = w.WriteString("the last")
	want.WriteString("{\"message\":\"the last\"}\n")
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ran; err != nil {
		t.Fatal(err)
	}
	wantFile(t, out, want.String())
	s := c.Stats()
	if err := s.Check(); err != nil || s.In != 20_001 || s.Outputs[0].Out != 20_001 {
		t.Errorf("%v, %+v", err, s.Counts)
	}
}

// TestStdinStops: the collector ends though nobody closes its standard input.
func TestStdinStops(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	out := &syncBuffer{}
	rn := run(t, &Config{
		Dir: t.TempDir(), Inputs: Ends("stdin:"), Outputs: Ends("stdout:?time_key=-"), Stdin: r,
		Stdout: out,
	})
	fmt.Fprint(w, "whole\nbegun")
	until(t, "the line is out", func() bool { return strings.Contains(out.String(), "whole") })
	if err := rn.stop(); err != nil {
		t.Error(err)
	}
	if got := out.String(); !strings.HasSuffix(got, "begun\"}\n") {
		t.Errorf("%q", got)
	}
}

// TestLinesListen: lines of many connections reach the output, those of each in their order.
func TestLinesListen(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "out.jsonl")
	sock := filepath.Join(dir, "s")
	r := run(t, &Config{
		Dir: filepath.Join(dir, "data"), Inputs: Ends("lines://127.0.0.1:0?parse=json",
			"lines+unix://"+filepath.ToSlash(sock)+"?parse=json"),
		Outputs: Ends(fileURL(out) + "?time_key=-&tag_key=-"),
	})
	var conns []net.Conn
	for i := range 8 {
		network, address := "tcp", r.Addrs()[0].String()
		if i%2 == 1 {
			network, address = "unix", sock
		}
		conn, err := net.Dial(network, address)
		if err != nil {
			t.Fatal(err)
		}
		conns = append(conns, conn)
		defer conn.Close()
	}
	const each = 500
	for n := range each {
		for i, conn := range conns {
			if _, err := fmt.Fprintf(conn, "{\"c\":%d,\"n\":%d}\n", i, n); err != nil {
				t.Fatal(err)
			}
		}
	}
	until(t, "all lines are stored", func() bool { s := r.Stats(); return s.Stored == each*int64(len(conns)) })
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	next := make([]int, len(conns))
	for line := range bytes.Lines(got) {
		var c, n int
		if _, err := fmt.Sscanf(string(line), `{"c":%d,"n":%d}`, &c, &n); err != nil || n != next[c] {
			t.Fatalf("%s: %v, want %d", line, err, next[c])
		}
		next[c]++
	}
	for c, n := range next {
		if n != each {
			t.Errorf("%d lines of connection %d, want %d", n, c, each)
		}
	}
	s := r.Stats()
	if err := s.Check(); err != nil || s.Inputs[0].Bytes == 0 || s.Inputs[1].In != each*4 {
		t.Errorf("%v, %+v", err, s.Inputs)
	}
}

// TestLinesCrowd: where there are no more places, the connection that was silent for the longest
// time ends, and its line is kept.
func TestLinesCrowd(t *testing.T) {
	l := lineInputOf(t, "lines://127.0.0.1:0", 1<<20)
	var err error
	if l.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	l.maxConnections = 2
	stored := make(chan string, 10)
	ctx, cancel := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- l.Run(ctx, storing(func(line string) { stored <- line })) }()
	var conns []net.Conn
	for i := range 3 {
		conn, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		conns = append(conns, conn)
		fmt.Fprintf(conn, "whole %d\nbegun %d", i, i)
		if got := <-stored; got != fmt.Sprintf(`lines {"message":"whole %d"}`, i) && i < 2 {
			t.Fatal(got)
		}
	}
	if _, err := conns[0].Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the oldest connection: %v", err)
	}
	cancel()
	if err := <-ran; err != nil {
		t.Error(err)
	}
	close(stored)
	var rest []string
	for line := range stored {
		rest = append(rest, line)
	}
	if !slices.ContainsFunc(rest, func(s string) bool { return strings.Contains(s, "begun 2") }) {
		t.Errorf("%q", rest)
	}
}

// storing is a Sink that hands on each line.
type storing func(line string)

func (f storing) Store(ctx context.Context, chunks []*forward.Chunk, p []byte) (func(context.Context) error,
	error,
) {
	var c collected
	_, err := c.Store(ctx, chunks, p)
	for _, line := range c.lines {
		f(line)
	}
	return nil, err
}

func (storing) Position() []byte { return nil }

// FuzzLineStream: the same text gives the same events, however it is cut into reads.
func FuzzLineStream(f *testing.F) {
	f.Add([]byte("{\"a\":1}\nb=2\r\n\n\x00\xff\nlast"), []byte{3}, byte(0))
	f.Add([]byte("a\n"+strings.Repeat(" ", 40)+"\n \n\xc2\xa0\r\n "), []byte{5}, byte(0))
	f.Add([]byte(strings.Repeat("long ", 20)+"\nx"), []byte{1, 200}, byte(1))
	parses := []string{"text", "json", "logfmt"}
	f.Fuzz(func(t *testing.T, text, cuts []byte, parse byte) {
		url := "lines://h:1?max_line=32&address_key=from&parse=" + parses[int(parse)%len(parses)]
		var whole, pieces collected
		for got, r := range map[*collected]io.Reader{
			&whole:  bytes.NewReader(text),
			&pieces: &cutReader{text, cuts, 0},
		} {
			l := lineInputOf(t, url, 1<<20)
			if err := newLineStream(l, "peer").run(t.Context(), r, got); err != nil {
				t.Fatal(err)
			}
			if l.bytes.Load() != int64(len(text)) || l.memory.held.Load() != 0 {
				t.Fatalf("%d of %d bytes, %d held", l.bytes.Load(), len(text), l.memory.held.Load())
			}
		}
		if !slices.Equal(whole.lines, pieces.lines) {
			t.Fatalf("%q\n%q", whole.lines, pieces.lines)
		}
		if n := bytes.Count(text, []byte("\n")) + 1; len(whole.lines) > n {
			t.Fatalf("%d events of %d lines", len(whole.lines), n)
		}
	})
}

// cutReader gives a text in pieces.
type cutReader struct {
	text, cuts []byte
	i          int
}

func (r *cutReader) Read(b []byte) (int, error) {
	if len(r.text) == 0 {
		return 0, io.EOF
	}
	n := len(r.text)
	if len(r.cuts) > 0 {
		n = 1 + int(r.cuts[r.i%len(r.cuts)])
		r.i++
	}
	n = copy(b, r.text[:min(n, len(r.text))])
	r.text = r.text[n:]
	return n, nil
}

// BenchmarkLines stores lines of 140 bytes in a journal, as a unix socket brings them.
func BenchmarkLines(b *testing.B) {
	text := strings.Repeat("x", 100) + ` GET /api/v1/orders/184467 200`
	line := map[string]string{
		"text": text + strings.Repeat("y", 139-len(text)) + "\n",
		"json": `{"time":"2026-11-21T02:03:04.123456Z","level":"info","msg":"order placed","id":184467,"path":"/api/v1/orders/184467","took":0.25,"ok":1}` + "\n",
	}
	for _, parse := range []string{"text", "json"} {
		b.Run(parse, func(b *testing.B) {
			c, err := Open(&Config{
				Dir: b.TempDir(), Inputs: Ends("stdin:?parse=" + parse), Outputs: Ends("discard:"),
				Stdin: strings.NewReader(""), Log: logTo(io.Discard),
			})
			if err != nil {
				b.Fatal(err)
			}
			in := c.inputs[0]
			l := in.Input.(*lineInput)
			block := []byte(strings.Repeat(line[parse], 500))
			ctx, cancel := context.WithCancel(b.Context())
			ran := make(chan error, 1)
			blocks := make(chan []byte)
			l.stdin = &blockReader{blocks: blocks}
			go func() { ran <- c.Run(ctx) }()
			b.SetBytes(int64(len(block)))
			for b.Loop() {
				blocks <- block
			}
			close(blocks)
			if err := <-ran; err != nil {
				b.Fatal(err)
			}
			b.StopTimer()
			cancel()
			if s := c.Stats(); s.In%500 != 0 || s.In == 0 {
				b.Fatalf("%+v", s.Counts)
			}
		})
	}
}

// blockReader gives blocks as they come.
type blockReader struct {
	blocks chan []byte
	left   []byte
}

func (r *blockReader) Read(b []byte) (int, error) {
	if len(r.left) == 0 {
		block, ok := <-r.blocks
		if !ok {
			return 0, io.EOF
		}
		r.left = block
	}
	n := copy(b, r.left)
	r.left = r.left[n:]
	return n, nil
}
