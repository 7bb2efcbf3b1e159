// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/lines"
)

// serving is "spillway serve" with a log of JSON, each line of which comes by a channel.
type serving struct {
	t     *testing.T
	lines chan map[string]any
	out   bytes.Buffer
	end   context.CancelFunc
	code  chan int
}

func startServe(t *testing.T, args ...string) *serving {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	s := &serving{t: t, lines: make(chan map[string]any, 10_000), end: cancel, code: make(chan int, 1)}
	r, w := io.Pipe()
	go func() {
		defer close(s.lines)
		for dec := json.NewDecoder(r); ; {
			line := map[string]any{}
			if err := dec.Decode(&line); err != nil {
				if err != io.EOF {
					t.Errorf("what is on standard error is no JSON: %v", err)
				}
				_, _ = io.Copy(io.Discard, r)
				return
			}
			s.lines <- line
		}
	}()
	go func() {
		s.code <- run(ctx, append([]string{"serve", "--log-format", "json"}, args...),
			&streams{strings.NewReader(""), &s.out, w})
		_ = w.Close()
	}()
	t.Cleanup(func() {
		cancel()
		for range s.lines { // to its end
		}
	})
	return s
}

// next returns the next line with this text.
func (s *serving) next(text string) map[string]any {
	s.t.Helper()
	limit := time.After(4 * time.Minute)
	for {
		select {
		case line, ok := <-s.lines:
			if ok && line["msg"] != text {
				continue
			}
			if !ok {
				s.t.Fatalf("it ended without saying %q", text)
			}
			return line
		case <-limit:
			s.t.Fatalf("it does not say %q", text)
		}
	}
}

// number returns what stands in a line under keys.
func number(t *testing.T, line map[string]any, keys ...string) int64 {
	t.Helper()
	var v any = line
	for _, k := range keys {
		m, _ := v.(map[string]any)
		v = m[k]
	}
	f, ok := v.(float64)
	if !ok {
		t.Fatalf("no number %v in %v", keys, line)
	}
	return int64(f)
}

// TestServeSpeaks: what the first lines, the status lines and the account say is what was
// configured and sent.
func TestServeSpeaks(t *testing.T) {
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	s := startServe(t, "--listen", "forward://127.0.0.1:0", "--data", data, "--to", "stdout:", "--to", "discard:",
		"--status-every", "20ms", "--log-level", "debug")
	if line := s.next("spillway"); line["version"] != version() {
		t.Error(line)
	}
	if line := s.next("keeping"); line["data"] != data || number(t, line, "journal_used") != 0 ||
		number(t, line, "journal_limit") != 4<<30 {
		t.Error(line)
	}
	for _, url := range []string{"stdout:", "discard:"} {
		if line := s.next("writing"); line["url"] != url {
			t.Error(line)
		}
	}
	if line := s.next("acking"); line["ack"] != "synced" || line["means"] != acks["synced"] {
		t.Error(line)
	}
	if line := s.next("to see more"); line["journal"] != "spillway journal ls "+data {
		t.Error(line)
	}
	url, _ := s.next("listening")["url"].(string)
	client := &forward.Client{Network: "tcp", Address: strings.TrimPrefix(url, "forward://")}
	defer client.Close()
	const chunks, events = 30, 7
	var entries []byte
	var reader lines.Reader
	for i := range events {
		entries, _ = reader.AppendEntry(entries, fmt.Appendf(nil, `{"n":%d}`, i), time.Now())
	}
	var in, inBytes, out, outBytes int64
	status := func() map[string]any {
		line := s.next("status")
		in += number(t, line, "in")
		inBytes += number(t, line, "in_bytes")
		out += number(t, line, "output0", "out")
		outBytes += number(t, line, "output0", "bytes")
		return line
	}
	for range chunks {
		if err := client.Send(t.Context(), &forward.Chunk{
			Tag: "t", ID: forward.NewID(), UniqueID: true, Entries: entries,
			Events: events,
		}); err != nil {
			t.Fatal(err)
		}
		status()
	}
	for out < chunks*events {
		status()
	}
	last := status()
	if in != chunks*events || out != in || number(t, last, "output0", "behind") != 0 ||
		number(t, last, "output1", "behind") != 0 {
		t.Errorf("the lines say in %d, out %d of %d; the last one: %v", in, out, chunks*events, last)
	}
	if s.end(); <-s.code != 0 {
		t.Error("it failed")
	}
	account := s.next("account")
	inputs, _ := account["inputs"].([]any)
	outputs, _ := account["outputs"].([]any)
	if len(inputs) != 1 || len(outputs) != 2 {
		t.Fatal(account)
	}
	input, _ := inputs[0].(map[string]any)
	output, _ := outputs[0].(map[string]any)
	if number(t, input, "in") != in || number(t, input, "stored") != in || number(t, input, "bytes") != inBytes ||
		number(t, input, "stored_chunks") != chunks {
		t.Errorf("the lines say %d events of %d bytes, the account %v", in, inBytes, input)
	}
	if number(t, output, "out") != out || number(t, output, "bytes") != outBytes || number(t, output, "behind") != 0 {
		t.Errorf("the lines say %d events as %d bytes, the account %v", out, outBytes, output)
	}
	if got := s.out.String(); int64(len(got)) != outBytes || strings.Count(got, "\n") != chunks*events {
		t.Errorf("%d bytes in %d lines on standard output, told %d in %d", len(got), strings.Count(got, "\n"), outBytes,
			out)
	}
}

// TestServeLevel: what is below the level is not said, and no status where none is wanted.
func TestServeLevel(t *testing.T) {
	s := startServe(t, "--listen", "forward://127.0.0.1:0", "--data", filepath.Join(t.TempDir(), "data"), "--to",
		"discard:", "--log-level", "warn", "--status-every", "0")
	s.end()
	if code := <-s.code; code != 0 {
		t.Errorf("exit code %d", code)
	}
	for line := range s.lines {
		if line["msg"] != "account" {
			t.Errorf("said at level warn: %v", line)
		}
	}
	if got := command(t, "", "serve", "--status-every", "-1s"); got.code != exitUsage ||
		!strings.Contains(got.err, "--status-every") {
		t.Errorf("%+v", got)
	}
}
