// SPDX-License-Identifier: Apache-2.0

package kafka

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/spillwaylog/spillway/collector"
	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/codes"
)

// A slab is the records of a chunk and their bytes.
type slab struct {
	done    func(collector.Result)
	left    atomic.Int64   // records that are with the client, and one while the chunk is being made
	chunk   *forward.Chunk // in a transaction, like token and given
	token   []byte
	given   int // of rejected: dead letters already
	unmade  int // of rejected: no record was made of them
	late    int // events whose time is not that of their record
	records []kgo.Record
	headers []kgo.RecordHeader
	entries []int // of each record, its index in the chunk
	bytes   []byte
	ends    []int // in bytes: of each record its key, its value, its id, its headers

	mu       sync.Mutex
	rejected []collector.Rejected
	err      error
}

// slabKeeps is the largest slab that is kept for another chunk.
const slabKeeps = 4 << 20

// fill makes a record of each event that can be one.
func (p *producer) fill(c *forward.Chunk) *slab {
	s := p.slabs.Get().(*slab)
	now := time.Now()
	var refusals [noTopics]error
	var misplaced error
	refuse := func(entry int, err error) {
		s.rejected = append(s.rejected, collector.Rejected{Entry: entry, Err: err})
	}
	entries := forward.ReadEntries(c.Entries)
	index := -1
	for e, ok := entries.Next(); ok; e, ok = entries.Next() {
		index++
		r := kgo.Record{Timestamp: now}
		if p.topics.template != nil {
			from := len(s.bytes)
			s.bytes = p.topics.template.append(s.bytes, c.Tag, e.Record)
			name := s.bytes[from:]
			s.bytes = s.bytes[:from]
			before := len(p.topics.names)
			topic, why, ok := p.topics.of(name)
			if len(p.topics.names) > before {
				p.lookSoon()
			}
			if !ok {
				if refusals[why] == nil {
					refusals[why] = p.topics.error(why, name)
				}
				refuse(index, refusals[why])
				continue
			}
			r.Topic = topic
		}
		if p.settings.number != nil {
			from := len(s.bytes)
			s.bytes = p.settings.number.append(s.bytes, c.Tag, e.Record)
			n, ok := number(s.bytes[from:])
			if !ok {
				if misplaced == nil {
					misplaced = fmt.Errorf("partition= makes %.64q of the event, which is no partition's number",
						s.bytes[from:])
				}
				s.bytes = s.bytes[:from]
				refuse(index, misplaced)
				continue
			}
			s.bytes = s.bytes[:from]
			r.Partition = n
		}
		if p.settings.stamp {
			if at := time.Unix(e.Sec, int64(e.Nsec)); at.After(now.Add(-oldest)) && at.Before(now.Add(newest)) {
				r.Timestamp = at
			} else {
				s.late++
			}
		}
		p.render(s, c, e, index)
		s.records, s.entries = append(s.records, r), append(s.entries, index)
	}
	if err := entries.Err(); err != nil {
		for index++; index < c.Events; index++ {
			refuse(index, err)
		}
	}
	s.unmade = len(s.rejected)
	p.slice(s)
	if n, tell := p.restamped.more(s.late); tell {
		codes.OutputRestamps.Warn(p.env.Log, "events are too old or too new for their time to be the record's; it is the time of sending",
			"topic", p.settings.topic, "events", n)
	}
	return s
}

// render appends the bytes of one record.
func (p *producer) render(s *slab, c *forward.Chunk, e forward.Entry, index int) {
	b := p.settings.key.append(s.bytes, c.Tag, e.Record)
	s.ends = append(s.ends, len(b))
	switch {
	case p.settings.value != nil:
		b = p.settings.value.append(b, c.Tag, e.Record)
	case p.settings.msgpack:
		b = append(b, e.Record...)
	default:
		b = p.encoder.AppendLine(b, c.Tag, e)
		b = b[:len(b)-1] // the newline
	}
	s.ends = append(s.ends, len(b))
	if p.settings.id != "" {
		b = append(append(b, c.ID...), ':')
		b = strconv.AppendInt(b, int64(index), 10)
	}
	s.ends = append(s.ends, len(b))
	for i := range p.settings.headers {
		b = p.settings.headers[i].value.append(b, c.Tag, e.Record)
		s.ends = append(s.ends, len(b))
	}
	s.bytes = b
}

// slice has the records point at their bytes, which move no more. A header that is empty is none.
func (p *producer) slice(s *slab) {
	headers := p.settings.headers
	each := len(headers) + 1
	s.headers = slices.Grow(s.headers[:0], each*len(s.records)) // so that it does not move
	from, ends := 0, s.ends
	next := func() (part []byte) {
		part = s.bytes[from:ends[0]:ends[0]]
		from, ends = ends[0], ends[1:]
		return part
	}
	for i := range s.records {
		r := &s.records[i]
		if key := next(); len(key) > 0 {
			r.Key = key
		}
		r.Value = next()
		first := len(s.headers)
		if id := next(); len(id) > 0 {
			s.headers = append(s.headers, kgo.RecordHeader{Key: p.settings.id, Value: id})
		}
		for j := range headers {
			if value := next(); len(value) > 0 {
				s.headers = append(s.headers, kgo.RecordHeader{Key: headers[j].name, Value: value})
			}
		}
		if n := len(s.headers); n > first {
			r.Headers = s.headers[first:n:n]
		}
	}
}

// result is what becomes of a chunk of which each record was written or refused. What was refused
// is told.
func (p *producer) result(s *slab) collector.Result {
	if n, tell := p.refused.more(len(s.rejected)); tell {
		codes.OutputRefuses.Warn(p.env.Log, "events are refused for good and become dead letters", "topic",
			p.settings.topic, "events", n, "error", s.rejected[0].Err)
	}
	return collector.Result{Rejected: s.rejected, Bytes: int64(len(s.bytes)), Restamped: int64(s.late)}
}

// recycle keeps a slab for another chunk.
func (p *producer) recycle(s *slab) {
	if cap(s.bytes) > slabKeeps {
		return
	}
	clear(s.records)
	clear(s.headers)
	s.done, s.chunk, s.rejected, s.err, s.given, s.unmade, s.late = nil, nil, nil, nil, 0, 0, 0
	s.records, s.entries, s.bytes, s.ends = s.records[:0], s.entries[:0], s.bytes[:0], s.ends[:0]
	p.slabs.Put(s)
}

// ack counts records. A topic that was made for the first of them is there now.
func (p *producer) ack(s *slab) {
	n := int64(len(s.records))
	first := p.acked.Add(n) == n
	if p.topics.template != nil {
		first = p.topics.had(s.records)
	}
	if first {
		p.lookSoon()
	}
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
	err = fmt.Errorf("topic %s: %w", r.Topic, err)
	if !isRefusal(err) {
		if s.err == nil {
			s.err = err
		}
		return
	}
	for i := range s.records {
		if &s.records[i] == r {
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
	return strings.Contains(err.Error(), "invalid record partitioning choice") // the client has no better name for it
}
