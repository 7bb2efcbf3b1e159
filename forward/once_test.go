// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/msgpack"
)

// Bytes that were walked over are overwritten with the byte that MessagePack never uses: whoever
// walks over them again stumbles.
const poison = 0xc1

func poisoned(b []byte) {
	for i := range b {
		b[i] = poison
	}
}

// onceRecord is a record of all that a walk steps into.
const onceRecord = "84 a1 6d a1 62 a1 6e 93 01 02 d9 03 616263 a1 6f 82 05 c4 02 0102 06 c7 02 05 0102 a1 70 de 0001 a1 71 cb 0000000000000000"

var onceTimes = map[string]string{
	"usual": hexTime, "uint32": "ce 55ece6f8", "ext8": "c7 08 00 55ece6f8 075bcd15", "float": "cb 41d57b39be07e6b7", "zero": "00",
	"empty metadata": "92 " + hexTime + " 80", "metadata": "92 " + hexTime + " 82 a1 6d 92 a1 78 05 a1 6e d9 02 6161",
	"zero and metadata": "92 00 81 a1 6d 91 05",
}

// A message that comes in two pieces is walked once, wherever it was cut.
func TestMessageWalkedOnce(t *testing.T) {
	for name, when := range onceTimes {
		whole := unhex("94 a1 74 " + when + onceRecord + " 81" + hexChunk)
		for k := 1; k < len(whole); k++ {
			d := decoder{max: 1 << 20}
			b := bytes.Clone(whole)
			if f, _, err := d.next(b[:k]); f != more || err != nil {
				t.Fatalf("%s cut at %d: %v, %v", name, k, f, err)
			}
			switch {
			case d.scanning:
				poisoned(b[[...]int64{1: d.body, 2: d.record, 3: d.option}[d.element]:k])
			case d.stage == stageElement && int(d.pos) < k, k > len(unhex("94 a1 74 92"))+usualMost:
				t.Errorf("%s cut at %d: it got to %d only", name, k, d.pos)
			}
			if f, _, err := d.next(b); f != message || err != nil || d.pos != int64(len(b)) || d.optionEnd != d.pos {
				t.Errorf("%s cut at %d: %v, %v, at %d of %d", name, k, f, err, d.pos, len(b))
			}
		}
	}
}

// Entries that come in two pieces are walked once, and so are those that are rewritten.
func TestEntriesWalkedOnce(t *testing.T) {
	now := time.Unix(946684800, 0)
	for name, when := range onceTimes {
		whole := unhex("92" + when + onceRecord + "92" + when + "c0" + "92" + when + onceRecord)
		var want check
		var scan msgpack.Scanner
		if err := want.run(bytes.Clone(whole), noMost, &scan, int64(len(whole))); err != nil || want.events != 2 || want.skipped != 1 {
			t.Fatalf("%s: %+v, %v", name, want, err)
		}
		for k := 1; k < len(whole); k++ {
			var ck check
			var scan msgpack.Scanner
			b := bytes.Clone(whole)
			if err := ck.run(b[:k], noMost, &scan, int64(len(b))); err != nil {
				t.Fatalf("%s cut at %d: %v", name, k, err)
			}
			poisoned(b[:ck.pos])
			if ck.stage != atEntry {
				poisoned(b[ck.pos+1 : k])
			} else if k-int(ck.pos) > usualMost {
				t.Errorf("%s cut at %d: it got to %d only", name, k, ck.pos)
			}
			if err := ck.run(b, noMost, &scan, int64(len(b))); err != nil || ck.pos != int64(len(b)) || ck.events != want.events ||
				ck.zeros != want.zeros || ck.skipped != 1 || ck.invalid != 0 {
				t.Errorf("%s cut at %d: %+v, %v", name, k, ck, err)
			}
			poisoned(b)
			n := want.events * int64(len(unhex("92"+when+onceRecord)))
			if want.zeros > 0 {
				n += want.zeros * (eventTimeSize - 1)
			}
			if out := ck.rewrite(nil, b, now, nil); int64(len(out)) != n || bytes.Count(out, []byte{poison}) < len(unhex(onceRecord)) {
				t.Errorf("%s cut at %d: rewritten to %d bytes, want %d: %x", name, k, len(out), n, out)
			}
			ck.drop()
		}
		want.drop()
	}
}

// What was walked when a message was found is not walked when a chunk is made of it.
func TestTakeWalksNothing(t *testing.T) {
	for name, when := range onceTimes {
		for _, option := range []string{"", "81" + hexChunk} {
			header := "93"
			if option != "" {
				header = "94"
			}
			one := unhex(header + "a1 74" + when + onceRecord + option)
			b := append(bytes.Clone(one), one...)
			var got []byte
			events := 0
			s := &Server{Handler: HandlerFunc(func(_ context.Context, c *Chunk) error {
				got = append(got, c.Entries...)
				events += c.Events
				return nil
			})}
			s.init()
			c := newConn(s, &script{}, &s.Endpoint, nil)
			c.buf = &buffer{b: b}
			c.buf.owned.Store(2) // not the pool's
			c.w = len(b)
			c.takeGroup()
			for c.r < c.w {
				rest := b[c.r:]
				f, _, err := c.dec.next(rest)
				if f != message || err != nil {
					t.Fatalf("%s: %v, %v", name, f, err)
				}
				d := &c.dec
				poisoned(rest[d.record+1 : d.recordEnd])
				if d.mode == modeMeta && rest[d.bodyEnd-1] != codeMap0 {
					poisoned(rest[d.bodyEnd-2 : d.bodyEnd]) // within the metadata
				}
				if err := c.take(rest[:d.pos]); err != nil {
					t.Fatal(err)
				}
				c.r += int(d.pos)
				d.reset()
			}
			if err := c.flush(); err != nil || events != 2 || bytes.Count(got, []byte{poison}) < 2*(len(unhex(onceRecord))-1) {
				t.Errorf("%s, option %q: %v, %d events: %x", name, option, err, events, got)
			}
		}
	}
}
