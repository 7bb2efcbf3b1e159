// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"os"
	"sync/atomic"
	"time"

	"github.com/spillwaylog/spillway/collector"
	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/msgpack"
)

// A tail follows a file of JSON lines that is only appended to: tail:/var/log/app.jsonl?tag=app.
// Where it stands is stored with the events, so each line is stored once, whatever happens to the
// process.
type tail struct {
	path, tag      string
	bytes, invalid atomic.Int64
}

func tailKind(u *collector.URL, p *collector.Params) (func(*collector.InputEnv) (collector.Input, error), error) {
	t := &tail{path: u.Path, tag: p.String("tag", "tail")}
	return func(*collector.InputEnv) (collector.Input, error) { return t, nil }, nil
}

func (t *tail) Run(ctx context.Context, sink collector.Sink) error {
	f, err := os.Open(t.path)
	if err != nil {
		return err
	}
	defer f.Close()
	at, _ := binary.Uvarint(sink.Position()) // 0 at first
	for ctx.Err() == nil {
		c, n, err := t.read(io.NewSectionReader(f, int64(at), 1<<62))
		if err != nil {
			return err
		}
		if n == 0 {
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
			continue
		}
		at += n
		if _, err := sink.Store(ctx, []*forward.Chunk{c}, binary.AppendUvarint(nil, at)); err != nil {
			return err
		}
	}
	return nil
}

// read reads whole lines, of n bytes.
func (t *tail) read(r io.Reader) (c *forward.Chunk, n uint64, err error) {
	c = &forward.Chunk{Tag: t.tag}
	for lines := bufio.NewReader(r); c.Events < 1000; {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) { // what has no end yet comes again
			return c, n, nil
		} else if err != nil {
			return nil, 0, err
		}
		n += uint64(len(line))
		t.bytes.Add(int64(len(line)))
		entry := forward.AppendEventTime(msgpack.AppendArrayHeader(c.Entries, 2), time.Now().Unix(), 0)
		if entry, err = msgpack.AppendFromJSON(entry, json.NewDecoder(bytes.NewReader(line))); err != nil ||
			line[0] != '{' {
			t.invalid.Add(1)
			continue
		}
		c.Entries, c.Events = entry, c.Events+1
	}
	return c, n, nil
}

func (t *tail) Stats() collector.Received {
	return collector.Received{Bytes: t.bytes.Load(), Invalid: t.invalid.Load(), Connections: 1}
}
