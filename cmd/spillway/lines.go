// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/msgpack"
)

const (
	maxLine  = 1 << 20 // bytes of a line
	maxBatch = 1 << 20 // bytes of entries; the reader waits beyond
)

// lineBatches reads lines in a goroutine and hands on what has come so far.
type lineBatches struct {
	in    *bufio.Reader
	field string

	mu      sync.Mutex
	entries []byte
	events  int
	total   int           // lines read in all
	changed chan struct{} // closed and made anew when the fields above change
	ended   bool
	failure error
}

func newLineBatches(in io.Reader, field string) *lineBatches {
	return &lineBatches{in: bufio.NewReaderSize(in, 64<<10), field: field, changed: make(chan struct{})}
}

// read reads until the end, or until stop.
func (l *lineBatches) read() {
	var line []byte
	for {
		part, err := l.in.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > maxLine {
			l.end(fmt.Errorf("line %d is longer than %d bytes", l.total+1, maxLine))
			return
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if text := bytes.TrimRight(line, "\r\n"); len(text) > 0 && !l.add(text) {
			return
		}
		line = line[:0]
		if err != nil {
			if err == io.EOF {
				err = nil
			}
			l.end(err)
			return
		}
	}
}

// add appends one line to the batch, waiting for room; false after stop.
func (l *lineBatches) add(text []byte) bool {
	l.mu.Lock()
	for len(l.entries) >= maxBatch && !l.ended {
		changed := l.changed
		l.mu.Unlock()
		<-changed
		l.mu.Lock()
	}
	defer l.mu.Unlock()
	if l.ended {
		return false
	}
	l.entries = appendEntry(l.entries, time.Now(), text, l.field)
	l.total++
	if l.events++; l.events == 1 {
		l.signal()
	}
	return true
}

func (l *lineBatches) end(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended, l.failure = true, err
	l.signal()
}

func (l *lineBatches) signal() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// next returns what has been read since the last call, waiting for something;
// more is false at the end.
func (l *lineBatches) next(ctx context.Context) (entries []byte, events int, more bool) {
	l.mu.Lock()
	for l.events == 0 && !l.ended {
		changed := l.changed
		l.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, 0, false
		}
		l.mu.Lock()
	}
	defer l.mu.Unlock()
	entries, events = l.entries, l.events
	l.entries, l.events = nil, 0
	l.signal()
	return entries, events, events > 0
}

// stop ends the reading and returns how many lines were read.
func (l *lineBatches) stop() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.ended {
		l.ended = true
		l.signal()
	}
	return l.total
}

// err returns what ended the reading early.
func (l *lineBatches) err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failure
}

// appendEntry appends one entry: a line that is a JSON object is its record,
// any other text is the one field of it.
func appendEntry(b []byte, t time.Time, text []byte, field string) []byte {
	b = msgpack.AppendArrayHeader(b, 2)
	b = forward.AppendEventTime(b, t.Unix(), uint32(t.Nanosecond()))
	if bytes.HasPrefix(bytes.TrimLeft(text, " \t"), []byte("{")) {
		if with, ok := appendObject(b, text); ok {
			return with
		}
	}
	b = msgpack.AppendMapHeader(b, 1)
	b = msgpack.AppendString(b, field)
	return append(msgpack.AppendStringHeader(b, len(text)), text...)
}

// appendObject appends text as a map if all of it is one JSON object.
func appendObject(b, text []byte) ([]byte, bool) {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	with, err := msgpack.AppendFromJSON(b, dec)
	if err != nil {
		return b, false
	}
	if _, err := dec.Token(); err != io.EOF {
		return b, false
	}
	return with, true
}
