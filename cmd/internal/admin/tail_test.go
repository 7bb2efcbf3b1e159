// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/collector"
	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/msgpack"
)

// collecting is a collector that runs until the test ends, and a client of its input.
func collecting(t *testing.T) (*collector.Collector, *forward.Client) {
	t.Helper()
	c, err := collector.Open(&collector.Config{
		Inputs: collector.Ends("forward://127.0.0.1:0"), Outputs: collector.Ends("discard:"),
		Ack: collector.AckJournaled,
		Dir: filepath.Join(t.TempDir(), "data"), Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	client := &forward.Client{Network: "tcp", Address: c.Addrs()[0].String()}
	t.Cleanup(func() {
		_ = client.Close()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return c, client
}

// told is a chunk of events {"n": 0}, {"n": 1}, … with so many bytes besides.
func told(tag string, n, bytes int) *forward.Chunk {
	c := &forward.Chunk{Tag: tag, ID: forward.NewID(), UniqueID: true, Events: n}
	for i := range n {
		c.Entries = msgpack.AppendArrayHeader(c.Entries, 2)
		c.Entries = forward.AppendEventTime(c.Entries, 1_700_000_000, 0)
		c.Entries = msgpack.AppendMapHeader(c.Entries, 2)
		c.Entries = msgpack.AppendString(c.Entries, "n")
		c.Entries = msgpack.AppendInt(c.Entries, int64(i))
		c.Entries = msgpack.AppendString(c.Entries, "text")
		c.Entries = msgpack.AppendString(c.Entries, strings.Repeat("x", bytes))
	}
	return c
}

func sendAll(t *testing.T, c *forward.Client, chunks ...*forward.Chunk) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	for _, chunk := range chunks {
		if err := c.Send(ctx, chunk); err != nil {
			t.Fatal(err)
		}
	}
}

// tailing asks for a tail, whose first line says that it has begun.
func tailing(t *testing.T, c *Client, query url.Values) *bufio.Scanner {
	t.Helper()
	body, err := c.Get(t.Context(), "/tail", query)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = body.Close() })
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, 16<<20)
	if !lines.Scan() || lines.Text() != `{"skipped":0}` {
		t.Fatalf("it begins with %q, %v", lines.Text(), lines.Err())
	}
	return lines
}

func dial(t *testing.T, address string) *Client {
	t.Helper()
	c, err := Dial(address, func(err error) { t.Error(err) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// TestTail: those that ask get matching events and only these, in their order; the end of the
// server is the end of the answers.
func TestTail(t *testing.T) {
	col, sender := collecting(t)
	from := hooks(1)
	from.Tail = col.Tail
	s := start(t, "127.0.0.1:0?tail=true", from)
	c := dial(t, s.Addr().String())
	some := tailing(t, c, url.Values{"tag": {"app.*"}, "where": {"n == 1"}})
	all := tailing(t, c, nil)
	sendAll(t, sender, told("app.web", 3, 1), told("sys", 3, 1), told("app.db", 2, 1))
	for _, want := range []string{"app.web", "app.db"} {
		more := some.Scan()
		for more && some.Text() == `{"skipped":0}` {
			more = some.Scan()
		}
		if want := fmt.Sprintf(`{"time":"2023-11-14T22:13:20.000000000Z","tag":%q,"n":1,"text":"x"}`,
			want); some.Text() != want {
			t.Errorf("%s, want %s", some.Text(), want)
		}
	}
	for n := 0; n < 8 && all.Scan(); {
		if strings.HasPrefix(all.Text(), `{"time":`) {
			n++
		} else if all.Text() != `{"skipped":0}` {
			t.Errorf("%s", all.Text())
		}
	}
	s.Close()
	for all.Scan() {
		if all.Text() != `{"skipped":0}` {
			t.Errorf("and then %s", all.Text())
		}
	}
	for limit := time.Now().Add(4 * time.Minute); roomForTails(col) < 4; <-time.After(10 * time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatal("a tail is left")
		}
	}
}

// roomForTails is how many may be opened.
func roomForTails(c *collector.Collector) (n int) {
	for ; ; n++ {
		tail, err := c.Tail(&collector.TailOptions{})
		if err != nil {
			return n
		}
		defer tail.Close()
	}
}

// TestTailRefused: what is wrong with a question is told, and no more are answered than there may
// be.
func TestTailRefused(t *testing.T) {
	col, _ := collecting(t)
	from := hooks(1)
	from.Tail = col.Tail
	s := start(t, "127.0.0.1:0?tail=true", from)
	base := "http://" + s.Addr().String()
	for _, tt := range []struct {
		query string
		code  int
		want  string
	}{
		{"where=level+=+1", 400, "where, at byte 7: = is no comparison; == is"},
		{"where=" + url.QueryEscape(strings.Repeat("(", 5000)), 400, "nests too deep"},
		{"where=" + strings.Repeat("a", 9000), 400, "it may have 8192"},
		{"where=" + url.QueryEscape(`x matches "("`), 400, "missing closing"},
		{"where=" + url.QueryEscape("x\x1b[2J\x00\xff"), 400, "is not understood here"},
		{"tag=a**", 400, "tag: ** stands for whole parts of a tag"},
		{"tag=" + url.QueryEscape(strings.Repeat("{a,b}", 50)), 400, "more than 64 patterns"},
		{"tag=a&tag=b", 400, "tag is given twice"},
		{"tga=a", 400, `"tga" is unknown; there are tag, where and rate`},
		{"rate=0", 400, "is no number"},
		{"rate=x", 400, `rate: "x" is no number of events a second`},
		{"rate=99999999", 400, "rate: it is 1 to 10000"},
		{"rate=-1", 400, "rate: it is 1 to 10000"},
		{"a=%zz", 400, "invalid URL escape"},
		{"a;b", 400, "semicolon"},
	} {
		code, body := ask(t, http.DefaultClient, "GET", base+"/tail?"+tt.query)
		if code != tt.code || !strings.Contains(body, tt.want) || strings.ContainsAny(body, "\x1b\x00") {
			t.Errorf("%.40s: %d %q, want %d %q", tt.query, code, body, tt.code, tt.want)
		}
	}
	open := start(t, "127.0.0.1:0", from)
	if code, body := ask(t, http.DefaultClient, "GET", "http://"+open.Addr().String()+"/tail"); code != 403 ||
		!strings.Contains(body, "says tail=true") {
		t.Errorf("an address that everybody may ask: %d %q", code, body)
	}
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("a token that is long enough\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	guarded := start(t, "127.0.0.1:0?token_file="+filepath.ToSlash(token), from)
	if code, body := ask(t, http.DefaultClient, "GET", "http://"+guarded.Addr().String()+"/tail?rate=0",
		"Authorization", "Bearer a token that is long enough"); code != 400 {
		t.Errorf("with a token: %d %q", code, body)
	}
	if code, body := ask(t, http.DefaultClient, "GET", base+"/tail", "Sec-Fetch-Site", "cross-site"); code != 403 {
		t.Errorf("another site: %d %s", code, body)
	}
	c := dial(t, s.Addr().String())
	for range 4 {
		tailing(t, c, nil)
	}
	if code, body := ask(t, http.DefaultClient, "GET", base+"/tail"); code != 503 ||
		!strings.Contains(body, "4 tails are open already") {
		t.Errorf("one more: %d %s", code, body)
	}
}

// TestTailStalled: a client that does not read is cut off; what is sent meanwhile is stored and
// acked, however much that is.
func TestTailStalled(t *testing.T) {
	col, sender := collecting(t)
	from := hooks(1)
	from.Tail, from.unread = col.Tail, time.Second
	s := start(t, "127.0.0.1:0?tail=true", from)
	conn, err := net.Dial("tcp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.(*net.TCPConn).SetReadBuffer(4096); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, "GET /tail?rate=10000 HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(conn, make([]byte, 12)); err != nil { // its first line; no more is read
		t.Fatal(err)
	}
	for limit := time.Now().Add(4 * time.Minute); roomForTails(col) < 4; <-time.After(10 * time.Millisecond) {
		sendAll(t, sender, told("app", 10, 100_000))
		if time.Now().After(limit) {
			t.Fatal("a client that does not read is not cut off")
		}
	}
	if s := col.Stats(); s.Stored == 0 || s.Refused > 0 {
		t.Errorf("stored %d, refused %d", s.Stored, s.Refused)
	}
}
