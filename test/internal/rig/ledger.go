// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/tinylib/msgp/msgp"
)

// A Ledger takes chunks as a receiver of the protocol does: it drops repeats and notes what is new.
// The events of the logger's tests have a key "k", the name of their stream (one goroutine of one
// process), and "n", which counts in it from 0.
type Ledger struct {
	Mu       sync.Mutex          // over all fields
	chunks   map[string][32]byte // id → tag and entries
	Streams  map[string][]uint64 // name → numbers in the order of their coming
	Others   []map[string]any    // records without k
	Repeated int                 // chunks that came again
	wrong    []string
}

// NewLedger is an empty one.
func NewLedger() *Ledger {
	return &Ledger{chunks: map[string][32]byte{}, Streams: map[string][]uint64{}}
}

// Complain notes what is wrong; Check fails the test for it.
func (l *Ledger) Complain(format string, args ...any) {
	if len(l.wrong) < 20 {
		l.wrong = append(l.wrong, fmt.Sprintf(format, args...))
	}
}

// Take notes a chunk. size is the option size, -1 without one.
func (l *Ledger) Take(tag, id string, size int, entries []byte) {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	if id != "" {
		sum := sha256.Sum256(fmt.Appendf(nil, "%d %s %s", len(tag), tag, entries))
		if before, ok := l.chunks[id]; ok {
			l.Repeated++
			if before != sum {
				l.Complain("chunk %s came again with another tag or other entries", id)
			}
			return
		}
		l.chunks[id] = sum
	}
	events := 0
	for b := entries; len(b) > 0; events++ {
		var err error
		if b, err = l.entry(tag, b); err != nil {
			l.Complain("chunk %s, entry %d: %v", id, events, err)
			return
		}
	}
	if size >= 0 && events != size {
		l.Complain("chunk %s has %d events and option size %d", id, events, size)
	}
}

// entry reads [EventTime, map] with a reader that is not this project's.
func (l *Ledger) entry(tag string, b []byte) ([]byte, error) {
	if !bytes.HasPrefix(b, []byte{0x92, 0xd7, 0x00}) || len(b) < 11 {
		return nil, fmt.Errorf("no entry with an EventTime: % x", b[:min(len(b), 20)])
	}
	if binary.BigEndian.Uint32(b[3:]) == 0 {
		return nil, fmt.Errorf("time 0")
	}
	record, rest, err := msgp.ReadMapStrIntfBytes(b[11:], nil)
	if err != nil {
		return nil, err
	}
	l.record(tag, record)
	return rest, nil
}

func (l *Ledger) record(tag string, record map[string]any) {
	k, ok := record["k"].(string)
	if !ok {
		l.Others = append(l.Others, record)
		return
	}
	n, ok := Whole(record["n"])
	if !ok {
		l.Complain("%s: n is %v", k, record["n"])
		return
	}
	if want := tagOf(k, n); want != tag {
		l.Complain("%s-%d came under tag %q, want %q", k, n, tag, want)
	}
	l.Streams[k] = append(l.Streams[k], n)
}

// Whole is a number that has no fraction, of any type that a reader may make of it.
func Whole(v any) (uint64, bool) {
	switch v := v.(type) {
	case int64:
		return uint64(v), v >= 0
	case uint64:
		return v, true
	case float64:
		return uint64(v), v >= 0 && v == float64(uint64(v))
	}
	return 0, false
}

// Mixed is how the names of streams begin whose events have different tags.
const Mixed = "mixed "

// tagOf is the tag of an event: the last letter of its stream's name decides, or for mixed ones its
// number.
func tagOf(stream string, n uint64) string {
	if strings.HasPrefix(stream, Mixed) {
		return fmt.Sprint("t.", n*n%7)
	}
	return "t." + stream[len(stream)-1:]
}

// Events is how many events with a stream have come.
func (l *Ledger) Events() (n int) {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	for _, s := range l.Streams {
		n += len(s)
	}
	return n
}

// Check reports what was wrong with single chunks.
func (l *Ledger) Check(t testing.TB) {
	t.Helper()
	l.Mu.Lock()
	defer l.Mu.Unlock()
	if len(l.wrong) > 0 {
		t.Errorf("the receiver says:\n%s", strings.Join(l.wrong, "\n"))
	}
}

// WantStream checks that the events of a stream came once each, in order, all of 0 to least-1 and
// none of most or above.
func (l *Ledger) WantStream(t testing.TB, stream string, least, most uint64) {
	t.Helper()
	l.Mu.Lock()
	defer l.Mu.Unlock()
	wantNumbers(t, stream, l.Streams[stream], least, most)
}

func wantNumbers(t testing.TB, stream string, have []uint64, least, most uint64) {
	t.Helper()
	for i, n := range have {
		if n != uint64(i) {
			t.Errorf("%s: event %d comes as number %d of %d (at least %d are wanted); around it: %v", stream, n, i,
				len(have), least, have[max(0, i-3):min(len(have), i+4)])
			return
		}
	}
	if n := uint64(len(have)); n < least || n > most {
		t.Errorf("%s: %d events came, want %d to %d", stream, n, least, most)
	}
}

// Line notes a line of JSON.
func (l *Ledger) Line(text Line) {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	record := text.Record
	if number, ok := record["n"].(interface{ Int64() (int64, error) }); ok {
		if n, err := number.Int64(); err == nil {
			record["n"] = n
		}
	}
	l.record(text.Tag, record)
}
