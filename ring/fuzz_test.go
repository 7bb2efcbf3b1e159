// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"bytes"
	"testing"
)

// FuzzRecover reads any bytes as a ring's file: with the fuzzer's patches over a true one, and as
// they are.
func FuzzRecover(f *testing.F) {
	r, err := Open(&Options{Size: 256 << 10})
	if err != nil {
		f.Fatal(err)
	}
	defer r.Close()
	r.head.id = [16]byte{1, 2, 3}
	r.head.put(r.mem)
	var h Hint
	whole := map[string]bool{}
	for n := range uint32(200) {
		p := payload(nil, 0, n, 100+int(n))
		whole[string(p)] = true
		if _, err := r.Append(&h, Now, p); err != nil {
			f.Fatal(err)
		}
	}
	picture := bytes.Clone(r.mem)
	f.Add(uint32(segmentsAt), []byte("x"))
	f.Add(uint32(0), picture[:100])
	f.Add(uint32(segmentsAt), picture[segmentsAt:segmentsAt+400])
	f.Add(uint32(marksAt), bytes.Repeat([]byte{1}, 100))
	f.Fuzz(func(t *testing.T, at uint32, patch []byte) {
		if _, _, err := places(patch); err == nil {
			t.Log("a whole ring")
		}
		b := bytes.Clone(picture)
		copy(b[int(at)%len(b):], patch)
		r, err := fromBytes(b)
		if err != nil {
			return
		}
		var key uint64
		for {
			rec, ok, err := r.Next()
			if err != nil {
				t.Fatal(err)
			}
			if !ok {
				break
			}
			if !whole[string(rec.Data)] || rec.Key < key {
				t.Fatalf("%d bytes with key %d after %d", len(rec.Data), rec.Key, key)
			}
			key = rec.Key
		}
	})
}

// FuzzOwner reads any bytes as an owner file.
func FuzzOwner(f *testing.F) {
	o := Owner{Name: "app", PID: 12, BootID: "b", MachineID: "m", RingID: "00", Identity: []byte("x\ny\xff")}
	f.Add(o.text())
	f.Add([]byte(ownerTitle))
	f.Fuzz(func(t *testing.T, b []byte) {
		var o, again Owner
		if o.parse(b) != nil {
			return
		}
		if err := again.parse(o.text()); err != nil || again.PID != o.PID || !bytes.Equal(again.Identity, o.Identity) {
			t.Fatalf("%+v, %+v, %v", o, again, err)
		}
	})
}
