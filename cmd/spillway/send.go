// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/lines"
)

type sendCmd struct {
	To         string `help:"Server: forward://host:port, forward+tls://host:port?ca=PEM or forward+unix:///path (${default})." default:"forward://127.0.0.1:24224" placeholder:"URL"`
	Tag        string `help:"Tag of the events." default:"stdin"`
	Field      string `help:"Key under which a line that is no JSON object is sent (${default})." default:"message" placeholder:"KEY"`
	TimeKey    string `help:"Key under which a line of JSON says its time." placeholder:"KEY"`
	TimeFormat string `help:"How it says it: rfc3339, unix, unix_ms, unix_us, unix_ns, or a layout of Go such as '2006-01-02 15:04:05' (${default})." default:"rfc3339" placeholder:"FORMAT"`
	TagKey     string `help:"Key under which a line of JSON says its tag." placeholder:"KEY"`

	Timeout time.Duration `help:"Give up when what is sent together is not acked within this time, resends included. With --follow: how long the end waits until all is acked." default:"30s"`

	followFlags `embed:""`
}

// Help tells what does not fit behind a flag.
func (c *sendCmd) Help() string {
	return `Time and tag: --time-key and --tag-key name members of a line of JSON that become the time and the tag of its event and are taken out of its record. So what spillway writes is sent as what it was: spillway send --time-key time --tag-key tag <events.jsonl. A line that has no such member, or one that cannot be read, is sent all the same, with the time at which it was read and under --tag; its record keeps the member. Such lines are counted and told. Formats: rfc3339; seconds since 1970 (unix), or thousandths, millionths, billionths (unix_ms, unix_us, unix_ns), as a number or text; or a layout of Go, of UTC unless it says a zone.

With --follow what was read is kept in shared memory, under --shm, until it is acked; when the server takes nothing it flows over to --dir, and when there is no room the pipe waits. If this process is killed, the next send --follow of that --name (and --to, and --dir) sends the rest, each line once. What it had not read goes to the next reader of the pipe. At the end of standard input it waits for --timeout until all is acked; exit status 0: all is. On SIGINT and SIGTERM it reads on until the end, for --timeout or until another signal.

Settings of the server are parameters of its URL, put in quotes for the shell: 'forward+tls://logs.example?ca=ca.pem&shared_key_file=shared.key'

TLS (forward+tls://): ca= names those who vouch for the server (default: those of the system), cert= and key= this client's certificate and key, server_name= the name that the server's certificate has to have; insecure=true takes any certificate.

Shared key and user: shared_key_file= or shared_key_env= say where the key stands; username= with password_file= or password_env= logs in as a user; hostname= is the name of this client; empty_key=true is a handshake with an empty key; keepalive=false makes a connection for each chunk.`
}

// Validate is called with the flags set.
func (c *sendCmd) Validate() error {
	if c.Timeout <= 0 {
		return fmt.Errorf("--timeout: %v is no time in which an ack can come", c.Timeout)
	}
	if c.TimeKey == "" && c.TimeFormat != "rfc3339" {
		return errors.New("--time-format says how lines say their time, and --time-key, under which they do, is missing")
	}
	_, err := c.lineReader(false)
	return errors.Join(err, c.check())
}

// lineReader is what reads lines; with eventTime only times that an EventTime can say.
func (c *sendCmd) lineReader(eventTime bool) (*lines.Reader, error) {
	r, err := lines.NewReader(&lines.ReadOptions{
		Text: c.Field, Time: c.TimeKey, TimeFormat: c.TimeFormat,
		Tag: c.TagKey, EventTime: eventTime,
	})
	if err != nil {
		return nil, fmt.Errorf("--time-key, --time-format, --tag-key: %w", err)
	}
	return r, nil
}

// sendWindow is how many chunks are sent together. Lines in succession with the same tag are one
// chunk, so where tags change with each line there are many, and the server can sync them at once.
const sendWindow = 1 << 10

// Run sends standard input line by line. What is read while a batch is on its
// way becomes the next batch: so a slow stream is sent at once, a fast one in
// large chunks, in order, and each chunk is acked.
func (c *sendCmd) Run(ctx context.Context, s *streams) error {
	if c.Follow {
		return c.follow(ctx, s)
	}
	warnings := &inTurn{w: s.err}
	client, url, err := clientTo(c.To, "send", warnings)
	if err != nil {
		return err
	}
	defer client.Close()
	client.Window = sendWindow
	server := &reach{w: warnings, url: url, address: client.Address}
	client.Changed = server.changed
	reader, err := c.lineReader(false)
	if err != nil {
		return err
	}
	l := newLineBatches(s.in, reader, c.Tag)
	l.times = finds{what: "time", key: c.TimeKey, instead: "with the time of its reading", w: warnings}
	l.tags = finds{what: "tag", key: c.TagKey, instead: "under the tag " + strconv.Quote(c.Tag), w: warnings}
	go l.read()
	acked := 0
	for err == nil {
		b := l.next(ctx)
		if b.events == 0 {
			break
		}
		var n int
		n, err = sendBatch(ctx, client, server, c.Timeout, &b)
		acked += n
	}
	_, printErr := fmt.Fprintf(s.out, "%d acked\n", acked)
	left := l.stop() - acked
	if err == nil {
		err = errors.Join(l.err(), ctx.Err())
	}
	if err != nil {
		return fmt.Errorf("%d lines not acked, and what was not read yet: %w", left, err)
	}
	return printErr
}

// sendBatch sends a batch, and returns how many of its events are acked.
func sendBatch(ctx context.Context, client *forward.Client, server *reach, timeout time.Duration, b *batch) (acked int,
	err error,
) {
	for runs := range slices.Chunk(b.runs, sendWindow) {
		end := server.begin(timeout)
		n, err := sendRuns(ctx, client, timeout, b.entries, runs)
		end()
		if acked += n; err != nil {
			return acked, err
		}
	}
	return acked, nil
}

// sendRuns sends runs, a chunk each, and returns how many of their events are acked. Chunks are
// acked in their order: it waits for the last.
func sendRuns(ctx context.Context, client *forward.Client, timeout time.Duration, entries []byte, runs []tagRun) (int,
	error,
) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var acked atomic.Int64
	var done sync.WaitGroup
	for i, r := range runs {
		chunk := &forward.Chunk{
			Tag: r.tag, ID: forward.NewID(), UniqueID: true, Entries: entries[r.from:r.end],
			Events: r.events,
		}
		if i == len(runs)-1 {
			err := client.Send(ctx, chunk)
			if errors.Is(err, context.DeadlineExceeded) {
				err = fmt.Errorf("gave up after %v: %w", timeout, err)
			}
			if err != nil {
				return int(acked.Load()), err
			}
			acked.Add(int64(r.events))
			break
		}
		done.Add(1)
		_, err := client.Start(chunk, func(err error) {
			if err == nil {
				acked.Add(int64(r.events))
			}
			done.Done()
		})
		if err != nil {
			return int(acked.Load()), err
		}
	}
	done.Wait() // for calls that come after the last ack
	return int(acked.Load()), nil
}

// inTurn is a writer for several goroutines.
type inTurn struct {
	mu sync.Mutex
	w  io.Writer
}

func (t *inTurn) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.w.Write(p)
}
