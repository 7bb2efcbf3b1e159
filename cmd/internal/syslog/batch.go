// SPDX-License-Identifier: Apache-2.0

package syslog

import (
	"context"
	"errors"
	"time"

	"github.com/spillwaylog/spillway/collector"
	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/codes"
)

// A batch is the chunks that are made of what was read at once.
type batch struct {
	in     *input
	chunks map[string]*forward.Chunk
	order  []*forward.Chunk
	bytes  int
	kept   int // bytes of room for entries, in all chunks
	tag    []byte
}

// batchBytes is from how much on a batch is stored.
const batchBytes = 1 << 20

func (in *input) batch() *batch {
	if b, ok := in.batches.Get().(*batch); ok {
		return b
	}
	return &batch{in: in, chunks: map[string]*forward.Chunk{}}
}

// add parses a message and puts its event into the chunk of its tag.
func (b *batch) add(text []byte, cut bool, now time.Time, from origin) {
	m := parse(text, now, b.in.zone)
	if cut {
		b.in.cut.Add(1)
		b.in.bad(codes.LineCut, "cut, and marked", errCut, from)
	}
	if !m.known && m.when.IsZero() {
		b.in.unparsed.Add(1)
		b.in.bad(codes.LineUnparsed, "kept as text", errNoSyslog, from)
	}
	b.tag = b.in.tag.append(b.tag[:0], &m)
	if len(b.tag) == 0 || len(b.tag) > forward.MaxTag {
		b.tag = append(b.tag[:0], "syslog"...)
	}
	c := b.chunks[string(b.tag)]
	if c == nil {
		c = &forward.Chunk{Tag: string(b.tag)}
		b.chunks[c.Tag] = c
	}
	if c.Events == 0 {
		b.order = append(b.order, c)
	}
	address := ""
	if b.in.addressKey != "" {
		address = from.host()
	}
	before, room := len(c.Entries), cap(c.Entries)
	c.Entries = appendEntry(c.Entries, &m, now, cut, b.in.addressKey, address)
	c.Events++
	b.bytes += len(c.Entries) - before
	b.kept += cap(c.Entries) - room
}

var (
	errCut      = errors.New("a message that is longer than max_message, or than there is memory for, or that ended before its count of octets")
	errNoSyslog = errors.New("a message without priority and time: it is no syslog")
)

// maxTags is how many tags a batch remembers for the next.
const maxTags = 256

// store stores what is there.
func (b *batch) store(ctx context.Context, sink collector.Sink) error {
	if len(b.order) == 0 {
		return nil
	}
	_, err := sink.Store(ctx, b.order, nil)
	for _, c := range b.order {
		c.Entries, c.Events = c.Entries[:0], 0
	}
	if len(b.chunks) > maxTags || b.kept > 4*batchBytes {
		clear(b.chunks)
		b.kept = 0
	}
	clear(b.order)
	b.order, b.bytes = b.order[:0], 0
	return err
}
