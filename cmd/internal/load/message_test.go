// SPDX-License-Identifier: Apache-2.0

package load

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/msgpack"
)

// An oracle is a Forward server that keeps the numbers of what arrives.
type oracle struct {
	forward.Server
	addr net.Addr

	mu         sync.Mutex
	numbers    map[uint64]int
	ids        map[string]int
	chunks     int
	events     int
	sizes      map[int]int // of time and record
	tags       map[string]int
	peerErrors []string
}

func newOracle(t testing.TB, setup func(*oracle)) *oracle {
	t.Helper()
	o := &oracle{numbers: map[uint64]int{}, ids: map[string]int{}, sizes: map[int]int{}, tags: map[string]int{}}
	o.Handler = forward.HandlerFunc(func(_ context.Context, c *forward.Chunk) error { return o.keep(c) })
	o.PeerError = func(err forward.PeerError) {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.peerErrors = append(o.peerErrors, err.Error())
	}
	if setup != nil {
		setup(o)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	o.addr = l.Addr()
	served := make(chan error, 1)
	go func() { served <- o.Serve(l) }()
	t.Cleanup(func() {
		o.Close()
		<-served
	})
	return o
}

func (o *oracle) dial(ctx context.Context) (net.Conn, error) {
	return (&Dialer{Network: "tcp", Address: o.addr.String()}).Dial(ctx)
}

// numberOf reads what stands under seq in a record.
func numberOf(record []byte) (uint64, error) {
	t, at, err := msgpack.ReadToken(record)
	if err != nil || t.Kind != msgpack.KindMap {
		return 0, fmt.Errorf("no map: %w", err)
	}
	key, _, n, err := msgpack.ReadBytes(record[at:])
	if err != nil || string(key) != seqKey {
		return 0, fmt.Errorf("the first key is %q: %w", key, err)
	}
	v, _, err := msgpack.ReadToken(record[at+n:])
	number, ok := v.Uint()
	if !ok {
		err = fmt.Errorf("the number is a %v: %w", v.Kind, err)
	}
	return number, err
}

func (o *oracle) keep(c *forward.Chunk) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.chunks++
	o.tags[c.Tag]++
	if c.ID != nil {
		o.ids[string(c.ID)]++
	}
	entries := forward.ReadEntries(c.Entries)
	for {
		e, ok := entries.Next()
		if !ok {
			return entries.Err()
		}
		n, err := numberOf(e.Record)
		if err != nil {
			return err
		}
		o.events++
		o.numbers[n]++
		o.sizes[10+len(e.Record)]++
	}
}

// check says what is not as it was sent.
func (o *oracle) check(t *testing.T, events, messages int64, once bool) {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.peerErrors) > 0 {
		t.Errorf("the server tells of what peers did wrong: %q", o.peerErrors)
	}
	if int64(o.events) != events {
		t.Errorf("%d events arrived, %d were sent", o.events, events)
	}
	if messages >= 0 && int64(len(o.ids)) != messages {
		t.Errorf("%d ids arrived with %d messages", len(o.ids), messages)
	}
	if !once {
		return
	}
	for n := range uint64(events) {
		if o.numbers[n] != 1 {
			t.Fatalf("number %d arrived %d times", n, o.numbers[n])
		}
	}
}

// TestMessages gives everything that can be sent to a server, in one piece and in others.
func TestMessages(t *testing.T) {
	records := [][]byte{[]byte("\x80"), []byte("\x81\xa3seq\xa5again"), []byte("\xde\x00\x02\xa1a\x01\xa1b\xc0")}
	for _, o := range []Options{
		{Mode: ModeMessage},
		{Mode: ModeMessage, Ack: true, Size: MinSize},
		{Mode: ModeMessage, Size: 70_000},
		{Mode: ModeMessage, Records: records, Ack: true},
		{Mode: ModeForward, Size: roomy - 1},
		{Mode: ModeForward, Ack: true, Batch: 1, Size: roomy},
		{Mode: ModeForward, Batch: 70_000, Size: MinSize},
		{Mode: ModeForward, Batch: 20, Size: 300, Tag: strings.Repeat("long.", 100)},
		{Mode: ModePacked},
		{Mode: ModePacked, Ack: true, Batch: 3, Records: records},
		{Mode: ModePacked, Batch: 1, Size: 1 << 20},
		{Mode: ModePacked, Compress: "gzip", Ack: true},
		{Mode: ModePacked, Compress: "zstd"},
		{Mode: ModePacked, Compress: "gzip", Fresh: true, Batch: 17},
		{Mode: ModePacked, Compress: "zstd", Fresh: true, Ack: true, Batch: 170},
	} {
		name := fmt.Sprintf("%s %s fresh=%t ack=%t ×%d of %d", o.Mode, o.Compress, o.Fresh, o.Ack, o.Batch, o.Size)
		t.Run(name, func(t *testing.T) {
			o.Dial = func(context.Context) (net.Conn, error) { return nil, nil }
			o, err := o.resolve()
			if err != nil {
				t.Fatal(err)
			}
			template, err := newTemplate(&o)
			if err != nil {
				t.Fatal(err)
			}
			var seq atomic.Int64
			var ids []string
			note := func(id []byte) { ids = append(ids, string(id)) }
			srv := newOracle(t, nil)
			messages := 0
			for range 2 {
				b, err := template.newBlock(&seq)
				if err != nil {
					t.Fatal(err)
				}
				nc, err := srv.dial(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				read := make(chan error, 1)
				acks := 0
				go func() {
					read <- readAcks(nc, func(ids [][]byte) error { acks += len(ids); return nil })
				}()
				before := messages
				for _, most := range []int64{1, 2, 3, 1 << 40, 1, 1 << 40} {
					wire, n, err := b.take(most, time.Unix(1441588984, 123456789), note)
					if err != nil {
						t.Fatal(err)
					}
					if int64(n) > most || n < 1 {
						t.Fatalf("%d messages, at most %d wanted", n, most)
					}
					messages += n
					if _, err := nc.Write(wire); err != nil {
						t.Fatal(err)
					}
				}
				if err := nc.(*net.TCPConn).CloseWrite(); err != nil {
					t.Fatal(err)
				}
				<-read // the server closes when it has read everything
				nc.Close()
				if o.Ack && acks != messages-before {
					t.Errorf("%d acks for %d messages", acks, messages-before)
				}
			}
			wanted := int64(-1)
			if o.Ack {
				wanted = int64(messages)
				if sorted := slices.Compact(slices.Sorted(slices.Values(ids))); len(sorted) != messages {
					t.Errorf("%d messages have %d ids", messages, len(sorted))
				}
			}
			numbered := o.Compress == "" || o.Fresh
			srv.check(t, int64(messages*o.Batch), wanted, numbered)
			if numbered && seq.Load() != int64(messages*o.Batch) {
				t.Errorf("%d numbers are gone, %d events were made", seq.Load(), messages*o.Batch)
			}
			if len(o.Records) == 0 && srv.sizes[o.Size] != srv.events {
				t.Errorf("sizes of the events: %v, want %d", srv.sizes, o.Size)
			}
			if len(srv.tags) != 1 || srv.tags[o.Tag] == 0 {
				t.Errorf("tags: %v", srv.tags)
			}
		})
	}
}

// TestSizes makes events of every size, whatever the lengths of headers are.
func TestSizes(t *testing.T) {
	for size := MinSize; size < 1000; size++ {
		m := maker{size: size, when: time.Unix(1, 2)}
		b, at, err := m.append(nil)
		if err != nil || len(b) != size {
			t.Fatalf("%d bytes, want %d: %v", len(b), size, err)
		}
		// What is compressed beforehand keeps it.
		if !bytes.HasPrefix(b, []byte("\xd7\x00\x00\x00\x00\x01\x00\x00\x00\x02")) {
			t.Fatalf("the time is % x", b[:10])
		}
		at.put(b, eventTime(time.Unix(1441588984, 123456789)), 7)
		if !bytes.HasPrefix(b, []byte("\xd7\x00\x55\xec\xe6\xf8\x07\x5b\xcd\x15")) { // docs/forward.md rule 9
			t.Fatalf("the time is % x", b[:10])
		}
		if n, err := msgpack.Skip(b[10:]); err != nil || n != size-10 {
			t.Fatalf("of %d bytes %d are the record: %v", size, n, err)
		}
		if n, err := numberOf(b[10:]); err != nil || n != 7 {
			t.Fatalf("number %d, %v", n, err)
		}
	}
}

func TestTakeAllocatesNothing(t *testing.T) {
	for _, mode := range []Mode{ModeMessage, ModeForward, ModePacked} {
		o, err := Options{Mode: mode, Ack: true, Dial: (&Dialer{}).Dial}.resolve()
		if err != nil {
			t.Fatal(err)
		}
		template, err := newTemplate(&o)
		if err != nil {
			t.Fatal(err)
		}
		b, err := template.newBlock(new(atomic.Int64))
		if err != nil {
			t.Fatal(err)
		}
		f := newUnacked(1 << 12)
		now := time.Now()
		push := func(id []byte) { f.push(id, now) }
		if n := testing.AllocsPerRun(100, func() { _, _, _ = b.take(5, now, push) }); n > 0 {
			t.Errorf("%s: %v allocations", mode, n)
		}
	}
}

func BenchmarkTake(b *testing.B) {
	for _, mode := range []Mode{ModeMessage, ModeForward, ModePacked} {
		b.Run(string(mode), func(b *testing.B) {
			o, err := Options{Mode: mode, Dial: (&Dialer{}).Dial}.resolve()
			if err != nil {
				b.Fatal(err)
			}
			template, err := newTemplate(&o)
			if err != nil {
				b.Fatal(err)
			}
			block, err := template.newBlock(new(atomic.Int64))
			if err != nil {
				b.Fatal(err)
			}
			now := time.Now()
			b.ReportAllocs()
			events := 0
			for b.Loop() {
				wire, n, _ := block.take(1<<20, now, nil)
				b.SetBytes(int64(len(wire)))
				events += n * o.Batch
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(events), "ns/event")
		})
	}
}
