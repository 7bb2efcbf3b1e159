// SPDX-License-Identifier: Apache-2.0

package kafka

import (
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/spillwaylog/spillway/collector"
	"github.com/spillwaylog/spillway/forward"
)

// A slab is the records of a chunk and their bytes.
type slab struct {
	topic   string
	done    func(collector.Result)
	left    atomic.Int64   // records that are with the client, and one while the chunk is being made
	chunk   *forward.Chunk // in a transaction, like token and given
	token   []byte
	given   int // of rejected: dead letters already
	records []kgo.Record
	headers []kgo.RecordHeader
	entries []int // of each record, its index in the chunk
	bytes   []byte

	mu       sync.Mutex
	rejected []collector.Rejected
	err      error
}

// slabKeeps is the largest slab that is kept for another chunk.
const slabKeeps = 4 << 20

// fill makes a record of each event.
func (p *producer) fill(c *forward.Chunk) *slab {
	s := p.slabs.Get().(*slab)
	s.topic = p.settings.topic
	now := time.Now()
	late := 0
	type span struct{ key, value, id int } // where these end in bytes
	var spans []span
	b := s.bytes[:0]
	entries := forward.ReadEntries(c.Entries)
	index := 0
	for e, ok := entries.Next(); ok; e, ok = entries.Next() {
		r := kgo.Record{Timestamp: now}
		if p.settings.stamp {
			if at := time.Unix(e.Sec, int64(e.Nsec)); at.After(now.Add(-oldest)) && at.Before(now.Add(newest)) {
				r.Timestamp = at
			} else {
				late++
			}
		}
		var at span
		b = p.settings.key.append(b, c.Tag, e.Record)
		at.key = len(b)
		switch {
		case p.settings.value != nil:
			b = p.settings.value.append(b, c.Tag, e.Record)
		case p.settings.msgpack:
			b = append(b, e.Record...)
		default:
			b = p.encoder.AppendLine(b, c.Tag, e)
			b = b[:len(b)-1] // the newline
		}
		at.value = len(b)
		if p.settings.header != "" {
			b = append(append(b, c.ID...), ':')
			b = strconv.AppendInt(b, int64(index), 10)
		}
		at.id = len(b)
		spans, s.records, s.entries = append(spans, at), append(s.records, r), append(s.entries, index)
		index++
	}
	if err := entries.Err(); err != nil {
		for ; index < c.Events; index++ {
			s.rejected = append(s.rejected, collector.Rejected{Entry: index, Err: err})
		}
	}
	s.bytes = b
	if p.settings.header != "" {
		s.headers = append(s.headers[:0], make([]kgo.RecordHeader, len(s.records))...)
	}
	from := 0
	for i := range s.records {
		r, at := &s.records[i], spans[i]
		if at.key > from {
			r.Key = b[from:at.key:at.key]
		}
		r.Value = b[at.key:at.value:at.value]
		if p.settings.header != "" {
			s.headers[i] = kgo.RecordHeader{Key: p.settings.header, Value: b[at.value:at.id:at.id]}
			r.Headers = s.headers[i : i+1 : i+1]
		}
		from = at.id
	}
	if late > 0 {
		p.env.Log.Warn("events are too old or too new for their time to be the record's; it is the time of sending",
			"topic", p.settings.topic, "events", late)
	}
	return s
}

// recycle keeps a slab for another chunk.
func (p *producer) recycle(s *slab) {
	if cap(s.bytes) > slabKeeps {
		return
	}
	clear(s.records)
	clear(s.headers)
	s.done, s.chunk, s.token, s.rejected, s.err, s.given = nil, nil, nil, nil, nil, 0
	s.records, s.entries = s.records[:0], s.entries[:0]
	p.slabs.Put(s)
}

// Times of events that may be those of records: Kafka deletes a segment by its newest record, and
// refuses what is far ahead.
const (
	oldest = 7 * 24 * time.Hour
	newest = time.Hour
)

// failed notes what became of a record that is not written.
func (s *slab) failed(r *kgo.Record, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !isRefusal(err) {
		if s.err == nil {
			s.err = err
		}
		return
	}
	for i := range s.records {
		if &s.records[i] == r {
			err = fmt.Errorf("topic %s: %w", s.topic, err)
			s.rejected = append(s.rejected, collector.Rejected{Entry: s.entries[i], Err: err})
			return
		}
	}
}

// isRefusal says that a record is refused however often it is sent.
func isRefusal(err error) bool {
	for _, forGood := range []error{kerr.MessageTooLarge, kerr.RecordListTooLarge, kerr.InvalidRecord} {
		if errors.Is(err, forGood) {
			return true
		}
	}
	return false
}
