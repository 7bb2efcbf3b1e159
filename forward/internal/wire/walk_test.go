// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
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
			d := Decoder{Max: 1 << 20}
			b := bytes.Clone(whole)
			if f, _, err := d.Next(b[:k]); f != More || err != nil {
				t.Fatalf("%s cut at %d: %v, %v", name, k, f, err)
			}
			switch {
			case d.scanning:
				poisoned(b[[...]int64{1: d.body, 2: d.record, 3: d.option}[d.element]:k])
			case d.stage == stageElement && int(d.Pos) < k, k > len(unhex("94 a1 74 92"))+usualMost:
				t.Errorf("%s cut at %d: it got to %d only", name, k, d.Pos)
			}
			if f, _, err := d.Next(b); f != Message || err != nil || d.Pos != int64(len(b)) || d.optionEnd != d.Pos {
				t.Errorf("%s cut at %d: %v, %v, at %d of %d", name, k, f, err, d.Pos, len(b))
			}
		}
	}
}

// Entries that come in two pieces are walked once, and so are those that are rewritten.
func TestEntriesWalkedOnce(t *testing.T) {
	now := time.Unix(946684800, 0)
	for name, when := range onceTimes {
		whole := unhex("92" + when + onceRecord + "92" + when + "c0" + "92" + when + onceRecord)
		var want Check
		var scan msgpack.Scanner
		if err := want.Run(bytes.Clone(whole), NoMost, &scan, int64(len(whole))); err != nil || want.Events != 2 || want.Skipped != 1 {
			t.Fatalf("%s: %+v, %v", name, want, err)
		}
		for k := 1; k < len(whole); k++ {
			var ck Check
			var scan msgpack.Scanner
			b := bytes.Clone(whole)
			if err := ck.Run(b[:k], NoMost, &scan, int64(len(b))); err != nil {
				t.Fatalf("%s cut at %d: %v", name, k, err)
			}
			poisoned(b[:ck.Pos])
			if ck.stage != atEntry {
				poisoned(b[ck.Pos+1 : k])
			} else if k-int(ck.Pos) > usualMost {
				t.Errorf("%s cut at %d: it got to %d only", name, k, ck.Pos)
			}
			if err := ck.Run(b, NoMost, &scan, int64(len(b))); err != nil || ck.Pos != int64(len(b)) || ck.Events != want.Events ||
				ck.Zeros != want.Zeros || ck.Skipped != 1 || ck.Invalid != 0 {
				t.Errorf("%s cut at %d: %+v, %v", name, k, ck, err)
			}
			poisoned(b)
			n := want.Events * int64(len(unhex("92"+when+onceRecord)))
			if want.Zeros > 0 {
				n += want.Zeros * (eventTimeSize - 1)
			}
			if out := ck.Rewrite(nil, b, now, nil); int64(len(out)) != n || bytes.Count(out, []byte{poison}) < len(unhex(onceRecord)) {
				t.Errorf("%s cut at %d: rewritten to %d bytes, want %d: %x", name, k, len(out), n, out)
			}
			ck.Drop()
		}
		want.Drop()
	}
}
