// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"unsafe"
)

var (
	damageSeed   = flag.Uint64("seed", 0, "seed of the damage test; 0 picks one")
	damageRounds = flag.Int("rounds", 0, "rings of the damage test; 0 is 300, or 60 with -short")
)

// A found record, and where in the file it lies.
type placed struct {
	Record
	from, to int64
}

// places reads what a file holds.
func places(b []byte) (all []placed, r *Ring, err error) {
	r, err = fromBytes(b)
	if err != nil {
		return nil, nil, err
	}
	base := uintptr(unsafe.Pointer(unsafe.SliceData(r.mem)))
	for {
		rec, ok, err := r.Next()
		if err != nil || !ok {
			return all, r, err
		}
		at := int64(uintptr(unsafe.Pointer(unsafe.SliceData(rec.Data))) - base)
		if len(rec.Data) > 0 { // else slicing leaves the pointer at the record's start
			at -= recordHeader
		}
		all = append(all, placed{rec, at, at + recordHeader + int64(len(rec.Data))})
	}
}

// TestDamage appends, reads, cuts, marks and clears at random, takes a picture of the memory,
// damages that at random, and reads it. What comes must have been appended just so, in order, once;
// what was done must not come; and everything must come that the damage did not touch.
func TestDamage(t *testing.T) {
	seed, rounds := *damageSeed, *damageRounds
	if seed == 0 {
		seed = rand.Uint64() >> 1
	}
	if rounds == 0 {
		rounds = 300
		if testing.Short() || raceEnabled {
			rounds = 60
		}
	}
	t.Logf("to repeat: -run TestDamage -seed %d", seed)
	for round := range rounds {
		d := &damageRun{t: t, rnd: rand.New(rand.NewPCG(seed, uint64(round))), truth: map[[2]uint64][]byte{}}
		d.name = fmt.Sprintf("seed %d round %d", seed, round)
		d.run()
		if t.Failed() {
			return
		}
	}
}

type damageRun struct {
	t     *testing.T
	name  string
	rnd   *rand.Rand
	r     *Ring
	truth map[[2]uint64][]byte // by key and lane: the data of what is not done, as far as the live reader knows
	slots map[int][][2]uint64  // a mark's records
	n     uint32
}

func (d *damageRun) run() {
	o := &Options{Size: 256 << 10, MaxRecord: 40_000}
	if d.rnd.IntN(2) == 0 {
		o.Size += int64(d.rnd.IntN(1 << 20))
	}
	d.r = mustOpen(d.t, o)
	d.slots = map[int][][2]uint64{}
	var hints [5]Hint
	unread := map[uint64][]byte{} // by key
	for range d.rnd.IntN(60) {
		for range d.rnd.IntN(80) {
			size := d.rnd.IntN(300)
			switch d.rnd.IntN(60) {
			case 0:
				size = d.rnd.IntN(40_000)
			case 1:
				size = 0
			}
			p := payload(nil, 0, d.n, size)
			if size == 0 {
				p = p[:0]
			}
			var key uint64
			var err error
			if d.rnd.IntN(50) == 0 && size < 3000 {
				key, err = d.r.AppendReserved(int64(d.n), p)
			} else {
				h := &hints[d.rnd.IntN(len(hints))]
				h.lane = uint8(reserved + 1 + d.rnd.IntN(4))
				key, err = d.r.Append(h, int64(d.n), p)
			}
			if err != nil {
				break
			}
			unread[key] = p
			d.n++
		}
		var window [][2]uint64
		for range d.rnd.IntN(100) {
			rec, ok, err := d.r.Next()
			if err != nil {
				d.t.Fatal(d.name, err)
			}
			if !ok {
				break
			}
			if !bytes.Equal(unread[rec.Key], rec.Data) {
				d.t.Fatal(d.name, "not what was appended")
			}
			id := [2]uint64{rec.Key, uint64(rec.Lane)}
			d.truth[id] = bytes.Clone(rec.Data)
			delete(unread, rec.Key)
			window = append(window, id)
		}
		if len(window) > 0 {
			last := window[len(window)-1][0]
			if d.rnd.IntN(3) > 0 {
				slot, ok := d.r.Put(Mark{First: window[0][0], Last: last})
				if ok {
					d.slots[slot] = window
				}
			}
			d.r.Cut(last)
		}
		for slot := range d.slots {
			if d.rnd.IntN(3) == 0 {
				d.r.Clear(slot)
				delete(d.slots, slot)
			}
		}
	}
	picture := bytes.Clone(d.r.mem)
	d.check(picture, unread)
	d.r.Close()
}

func (d *damageRun) check(picture []byte, unread map[uint64][]byte) {
	whole, adopted, err := places(picture)
	if err != nil {
		d.t.Fatal(d.name, err)
	}
	if lost := adopted.Lost(); lost != (Loss{}) {
		d.t.Fatal(d.name, "lost without damage: ", lost)
	}
	want := len(unread)
	for _, w := range d.slots {
		want += len(w)
	}
	if len(whole) != want {
		d.t.Fatalf("%s: %d records, not %d", d.name, len(whole), want)
	}
	for _, p := range whole {
		data, ok := unread[p.Key]
		if !ok {
			data, ok = d.truth[[2]uint64{p.Key, uint64(p.Lane)}]
		}
		if !ok || !bytes.Equal(data, p.Data) {
			d.t.Fatalf("%s: key %d was not appended like this", d.name, p.Key)
		}
	}

	for range 8 {
		b := bytes.Clone(picture)
		var hurt [][2]int64
		for range d.rnd.IntN(5) {
			from := int64(segmentsAt) + d.rnd.Int64N(int64(len(b))-segmentsAt)
			n := 1 + d.rnd.Int64N([]int64{1, 8, 100, 5000}[d.rnd.IntN(4)])
			to := min(from+n, int64(len(b)))
			d.garble(b, from, to)
			hurt = append(hurt, [2]int64{from, to})
		}
		if d.rnd.IntN(3) == 0 {
			n := int64(segmentsAt) + d.rnd.Int64N(int64(len(b))-segmentsAt)
			b = b[:n]
			hurt = append(hurt, [2]int64{n, int64(len(picture))})
		}
		left, _, err := places(b)
		if err != nil {
			d.t.Fatal(d.name, err)
		}
		touched := func(from, to int64) bool {
			for _, h := range hurt {
				if from < h[1] && h[0] < to {
					return true
				}
			}
			return false
		}
		i := 0
		for _, p := range whole {
			if i < len(left) && left[i].Key == p.Key && left[i].Lane == p.Lane {
				if !bytes.Equal(left[i].Data, p.Data) || left[i].Time != p.Time {
					d.t.Fatalf("%s: key %d is not what was appended", d.name, p.Key)
				}
				i++
				continue
			}
			if !touched(p.from, p.to) {
				d.t.Fatalf("%s: key %d lane %d at %d..%d is lost, damage %v", d.name, p.Key, p.Lane, p.from, p.to, hurt)
			}
		}
		if i < len(left) {
			d.t.Fatalf("%s: key %d lane %d was not there, or was before", d.name, left[i].Key, left[i].Lane)
		}
		// The head may be hurt as well: then anything may be missing, or what is done come again,
		// but nothing else.
		d.garble(b, d.rnd.Int64N(segmentsAt), segmentsAt)
		if left, _, err := places(b); err == nil {
			for _, p := range left {
				data, ok := d.truth[[2]uint64{p.Key, uint64(p.Lane)}]
				if !ok {
					data, ok = unread[p.Key]
				}
				if !ok || !bytes.Equal(data, p.Data) {
					d.t.Fatalf("%s: key %d is not what was appended", d.name, p.Key)
				}
			}
		}
	}
}

// garble overwrites bytes: with others, with zeros, or with what lies elsewhere.
func (d *damageRun) garble(b []byte, from, to int64) {
	switch d.rnd.IntN(3) {
	case 0:
		for i := from; i < to; i++ {
			b[i] = byte(d.rnd.Uint32())
		}
	case 1:
		clear(b[from:to])
	default:
		other := d.rnd.Int64N(int64(len(b)) - (to - from) + 1)
		if d.rnd.IntN(2) == 0 {
			other &^= 7
		}
		copy(b[from:to], b[other:])
	}
}

// TestForged logs texts that look like what the ring writes itself, and overwrites what lies before
// them, so that recovery scans into them: none is taken for a record.
func TestForged(t *testing.T) {
	r := mustOpen(t, &Options{Size: 256 << 10})
	var h Hint
	if _, err := r.Append(&h, Now, []byte("first")); err != nil {
		t.Fatal(err)
	}
	// Whole records as they would be in a segment of another use, at all places; and copies of true
	// ones, nonce and all.
	forged := make([]byte, 0, 3000)
	for i := range int64(30) {
		b := make([]byte, recordHeader+16)
		putRecord(b, 0x1234_5678_9abc_def0, segmentsAt+i*48, uint32(i), uint64(i+1)<<40, 1, []byte("forged forged   "))
		forged = append(forged, b...)
	}
	forged = append(forged, r.mem[segmentsAt:segmentsAt+200]...) // the segment's head and the record before
	if _, err := r.Append(&h, Now, forged); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Append(&h, Now, []byte("last")); err != nil {
		t.Fatal(err)
	}
	b := bytes.Clone(r.mem)
	at := bytes.Index(b, []byte("forged forged"))
	for from := at - 100; from < at; from++ {
		c := bytes.Clone(b)
		c[from] ^= 0x55
		left, _, err := places(c)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range left {
			if s := string(p.Data); s != "first" && s != string(forged) && s != "last" {
				t.Fatalf("byte %d: %q", from, s)
			}
		}
	}
	// A text cannot be a segment either, wherever segments may begin.
	for off := segmentsAt + r.head.unit; off < int64(len(b)); off += r.head.unit {
		copy(b[off:], b[segmentsAt:segmentsAt+200])
	}
	if left, _, err := places(b); err != nil || len(left) != 3 {
		t.Errorf("%d records, %v", len(left), err)
	}
}
