// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/forward/internal/vectors"
	"github.com/spillwaylog/spillway/msgpack"
)

// A message that comes in two pieces is walked once, wherever it was cut.
func TestMessageWalkedOnce(t *testing.T) {
	for name, when := range vectors.Times {
		whole := vectors.Unhex("94 a1 74 " + when + vectors.Record + " 81" + vectors.Chunk)
		for k := 1; k < len(whole); k++ {
			d := Decoder{Max: 1 << 20}
			b := bytes.Clone(whole)
			if f, _, err := d.Next(b[:k]); f != FoundMore || err != nil {
				t.Fatalf("%s cut at %d: %v, %v", name, k, f, err)
			}
			switch {
			case d.scanning:
				vectors.Spoil(b[[...]int64{1: d.body, 2: d.record, 3: d.option}[d.element]:k])
			case d.stage == stageElement && int(d.Pos) < k, k > len(vectors.Unhex("94 a1 74 92"))+maxUsual:
				t.Errorf("%s cut at %d: it got to %d only", name, k, d.Pos)
			}
			if f, _, err := d.Next(b); f != FoundMessage || err != nil || d.Pos != int64(len(b)) ||
				d.optionEnd != d.Pos {
				t.Errorf("%s cut at %d: %v, %v, at %d of %d", name, k, f, err, d.Pos, len(b))
			}
		}
	}
}

// Entries that come in two pieces are walked once, and so are those that are rewritten.
func TestEntriesWalkedOnce(t *testing.T) {
	now := time.Unix(946684800, 0)
	for name, when := range vectors.Times {
		whole := vectors.Unhex("92" + when + vectors.Record + "92" + when + "c0" + "92" + when + vectors.Record)
		var want Check
		var scan msgpack.Scanner
		if err := want.Run(bytes.Clone(whole), NoLimit, &scan, int64(len(whole))); err != nil || want.Events != 2 ||
			want.Skipped != 1 {
			t.Fatalf("%s: %+v, %v", name, want, err)
		}
		for k := 1; k < len(whole); k++ {
			var ck Check
			var scan msgpack.Scanner
			b := bytes.Clone(whole)
			if err := ck.Run(b[:k], NoLimit, &scan, int64(len(b))); err != nil {
				t.Fatalf("%s cut at %d: %v", name, k, err)
			}
			vectors.Spoil(b[:ck.Pos])
			if ck.stage != atEntry {
				vectors.Spoil(b[ck.Pos+1 : k])
			} else if k-int(ck.Pos) > maxUsual {
				t.Errorf("%s cut at %d: it got to %d only", name, k, ck.Pos)
			}
			if err := ck.Run(b, NoLimit, &scan, int64(len(b))); err != nil || ck.Pos != int64(len(b)) ||
				ck.Events != want.Events ||
				ck.Zeros != want.Zeros || ck.Skipped != 1 || ck.Invalid != 0 {
				t.Errorf("%s cut at %d: %+v, %v", name, k, ck, err)
			}
			vectors.Spoil(b)
			n := want.Events * int64(len(vectors.Unhex("92"+when+vectors.Record)))
			if want.Zeros > 0 {
				n += want.Zeros * (eventTimeSize - 1)
			}
			if out := ck.Rewrite(nil, b, now, nil); int64(len(out)) != n ||
				bytes.Count(out, []byte{vectors.Poison}) < len(vectors.Unhex(vectors.Record)) {
				t.Errorf("%s cut at %d: rewritten to %d bytes, want %d: %x", name, k, len(out), n, out)
			}
			ck.Drop()
		}
		want.Drop()
	}
}
