// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/spillwaylog/spillway/internal/lines"
)

const (
	maxLine  = 1 << 20 // bytes of a line
	maxBatch = 1 << 20 // bytes of entries and tags; the reader waits beyond
)

// lineBatches reads lines in a goroutine and hands on what has come so far.
type lineBatches struct {
	in     *bufio.Reader
	reader *lines.Reader
	tag    string // of lines that say none
	entry  []byte // of the line being read
	line   int    // its number, blank ones counted

	mu      sync.Mutex
	batch   batch
	total   int           // lines read in all
	times   finds         // where the lines' times and tags
	tags    finds         // were looked for
	changed chan struct{} // closed and made anew when the fields above change
	ended   bool
	failure error
}

// A batch is what was read since the one before it, in the order of the lines.
type batch struct {
	entries []byte
	events  int
	runs    []tagRun
	size    int // bytes, those of tags included
}

// runSize is about what a run costs besides its tag and its entries.
const runSize = 64

// A tagRun is lines in succession with the same tag.
type tagRun struct {
	tag       string
	from, end int // where its entries are
	events    int
}

func newLineBatches(in io.Reader, reader *lines.Reader, tag string) *lineBatches {
	return &lineBatches{in: bufio.NewReaderSize(in, 64<<10), reader: reader, tag: tag, changed: make(chan struct{})}
}

// read reads until the end, or until stop.
func (l *lineBatches) read() {
	var line []byte
	for l.line = 1; ; {
		part, err := l.in.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > maxLine {
			l.end(fmt.Errorf("line %d is longer than %d bytes", l.line, maxLine))
			return
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if text := bytes.TrimRight(line, "\r\n"); len(text) > 0 && !l.add(text) {
			return
		}
		line = line[:0]
		l.line++
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
	var e lines.Event
	l.entry, e = l.reader.AppendEntry(l.entry[:0], text, time.Now())
	l.mu.Lock()
	for l.batch.size >= maxBatch && !l.ended {
		changed := l.changed
		l.mu.Unlock()
		<-changed
		l.mu.Lock()
	}
	defer l.mu.Unlock()
	if l.ended {
		return false
	}
	l.total++
	l.times.note(l.line, e.Time)
	l.tags.note(l.line, e.Tagged)
	l.batch.add(l.entry, &e, l.tag)
	if l.batch.events == 1 {
		l.signal()
	}
	return true
}

// add appends an entry, under the tag that its line says or else tag.
func (b *batch) add(entry []byte, e *lines.Event, tag string) {
	last := len(b.runs) - 1
	said := e.Tagged == lines.FindingSaid
	if said && (last < 0 || string(e.Tag) != b.runs[last].tag) {
		b.runs = append(b.runs, tagRun{tag: string(e.Tag), from: len(b.entries)})
		last++
		b.size += len(e.Tag) + runSize
	} else if !said && (last < 0 || tag != b.runs[last].tag) {
		b.runs = append(b.runs, tagRun{tag: tag, from: len(b.entries)})
		last++
		b.size += runSize
	}
	b.size += len(entry)
	b.entries = append(b.entries, entry...)
	b.events++
	b.runs[last].end = len(b.entries)
	b.runs[last].events++
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
// it has no events at the end.
func (l *lineBatches) next(ctx context.Context) (b batch) {
	l.mu.Lock()
	for l.batch.events == 0 && !l.ended {
		changed := l.changed
		l.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return batch{}
		}
		l.mu.Lock()
	}
	defer l.mu.Unlock()
	b, l.batch = l.batch, batch{}
	l.signal()
	return b
}

// stop ends the reading, tells what could not be read, and returns how many lines were.
func (l *lineBatches) stop() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.ended {
		l.ended = true
		l.signal()
	}
	l.times.sum(l.total)
	l.tags.sum(l.total)
	return l.total
}

// err returns what ended the reading early.
func (l *lineBatches) err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failure
}
