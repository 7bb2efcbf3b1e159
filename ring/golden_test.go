// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"bytes"
	"compress/gzip"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

var update = flag.Bool("update", false, "write testdata anew")

// TestGolden reads a ring of each version of the format as it was written when that was new.
func TestGolden(t *testing.T) {
	const name = "golden.4711.0102030405060708"
	if *update {
		writeGolden(t, filepath.Join("testdata", "v"+strconv.Itoa(formatVersion), name))
	}
	for version := 1; version <= formatVersion; version++ {
		v := "v" + strconv.Itoa(version)
		t.Run(v, func(t *testing.T) { readGolden(t, name, filepath.Join("testdata", v, name)) })
	}
}

func readGolden(t *testing.T, name, kept string) {
	dir := filepath.Join(t.TempDir(), name)
	if err := os.CopyFS(dir, os.DirFS(kept)); err != nil {
		t.Fatal(err)
	}
	packed, err := os.Open(filepath.Join(kept, "ring.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer packed.Close()
	unpack, err := gzip.NewReader(packed)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(unpack)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, ringFile), b, 0o600); err != nil {
		t.Fatal(err)
	}
	all, err := Inspect(filepath.Dir(dir))
	if err != nil || len(all) != 1 {
		t.Fatal(len(all), err)
	}
	i := all[0]
	if i.Err != nil || i.Live || i.Owner.Name != "golden" || i.Owner.PID != 4711 ||
		string(i.Owner.Identity) != "who \"it\" is" || i.Owner.BootID == "" {
		t.Errorf("%+v", i)
	}
	if i.Cut == 0 || len(i.Marks) != 1 || string(i.Marks[0].Label[:]) != "a label of 24 characters" ||
		string(i.State) != "the state" || i.Counters[3] != 33 || i.Counters[15] != 1 {
		t.Errorf("%+v", i)
	}
	if i.Lost != (Loss{}) || len(i.ring.rescue.found) < 4 || i.Used == 0 || i.Size != 256<<10 {
		t.Errorf("%+v", i)
	}
	var numbers []uint32
	lanes := map[uint16]bool{}
	i.AllRecords(func(r Record) bool {
		_, n, err := parsePayload(r.Data)
		if err != nil || r.Time != int64(n)*1000 {
			t.Errorf("%+v, %v", r, err)
		}
		numbers = append(numbers, n)
		lanes[r.Lane] = true
		return true
	})
	// 0..29 were read; a mark covers 10..19; the rest up to 99 was not read.
	if len(numbers) != 80 || numbers[0] != 10 || numbers[9] != 19 || numbers[10] != 30 || numbers[79] != 99 ||
		uint64(len(numbers)) != i.Records || len(lanes) != 3 {
		t.Errorf("%v, lanes %v", numbers, lanes)
	}
}

func writeGolden(t *testing.T, dir string) {
	t.Helper()
	r := mustOpen(t, &Options{Size: 256 << 10})
	r.head.id = [16]byte{1, 2, 3, 4, 5, 6, 7, 8, 9}
	r.head.put(r.mem)
	for n := range uint32(100) {
		size := 100
		if n == 60 {
			size = 6000
		}
		p := payload(nil, 0, n, size)
		h := Hint{lane: uint8(2 + n%2)}
		var err error
		if n%10 == 5 {
			_, err = r.AppendReserved(int64(n)*1000, p)
		} else {
			_, err = r.Append(&h, int64(n)*1000, p)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	var m Mark
	var last uint64
	for n := range 30 {
		rec, _, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		switch n {
		case 10:
			m.First, m.Lane = rec.Key, rec.Lane
		case 19:
			m.Last = rec.Key
		}
		last = rec.Key
	}
	copy(m.Label[:], "a label of 24 characters")
	r.Put(m)
	r.Cut(last)
	r.Count(3, 33)
	r.Count(15, 1)
	if err := r.SetState([]byte("the state")); err != nil {
		t.Fatal(err)
	}
	o := Owner{
		Name: "golden", PID: 4711, BootID: "4e8ab6ae-6c3b-4d4e-9a4c-0a3b5e1f2d3c",
		MachineID: "0123456789abcdef0123456789abcdef",
		RingID:    "01020304050607080900000000000000", Identity: []byte("who \"it\" is"), Made: r.clock.base,
	}
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, err := w.Write(r.mem)
	if err := errors.Join(
		err, w.Close(), os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, ownerFile), o.text(), 0o600),
		os.WriteFile(filepath.Join(dir, "ring.gz"), packed.Bytes(), 0o600),
	); err != nil {
		t.Fatal(err)
	}
}
