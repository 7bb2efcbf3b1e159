// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"path/filepath"
	"testing"
)

// segmentBytes is a whole segment file with these records, as a journal would have written it.
func segmentBytes(seq uint32, n nonce, recs ...[]byte) []byte {
	b := make([]byte, dataStart)
	bind := binder{seq: seq, nonce: n}
	for _, rec := range recs {
		start := place(int64(len(b)))
		end := align8(start + recordHeader + int64(len(rec)))
		b = append(b, make([]byte, end-int64(len(b)))...)
		bind.putHeader(b[start:], kindRecord, len(rec), crc32.Checksum(rec, castagnoli), start)
		copy(b[start+recordHeader:], rec)
	}
	b = append(b, make([]byte, pageUp(int64(len(b)))-int64(len(b)))...)
	h := segmentHeader{kind: segmentLive, seq: seq, nonce: n, size: int64(len(b)), synced: at(seq, dataStart)}
	h.put(b)
	return b
}

// countingReader counts the bytes that are read.
type countingReader struct {
	io.ReaderAt
	n int64
}

func (c *countingReader) ReadAt(b []byte, off int64) (int, error) {
	n, err := c.ReaderAt.ReadAt(b, off)
	c.n += int64(n)
	return n, err
}

var fuzzNonce = nonce{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}

// FuzzRecover gives recovery a segment that was damaged anywhere, with payloads that imitate
// records, and reads it. Nothing that was not appended is read, nothing panics, and the work stays
// linear.
func FuzzRecover(f *testing.F) {
	plain := segmentBytes(1, fuzzNonce, []byte("one"), []byte("two"), bytes.Repeat([]byte("three"), 2000))
	f.Add(plain[:dataStart+60], []byte("one"), uint32(dataStart), []byte{0xff})
	f.Add([]byte{}, plain, uint32(dataStart+20), []byte("damage"))
	f.Add([]byte("x"), forged(200), uint32(dataStart+3), []byte{0})
	f.Add([]byte{}, []byte{}, uint32(0), []byte{})
	f.Fuzz(func(t *testing.T, one, two []byte, where uint32, damage []byte) {
		if len(one)+len(two) > 1<<20 {
			return
		}
		recs := [][]byte{one, two, append([]byte("last"), one...)}
		b := segmentBytes(1, fuzzNonce, recs...)
		if at := int(where % uint32(len(b))); at >= pageSize {
			copy(b[at:], damage)
		}
		check := func(data []byte) {
			for _, rec := range recs {
				if bytes.Equal(rec, data) {
					return
				}
			}
			t.Fatalf("%d bytes were read that were never appended", len(data))
		}
		// As a reader or recovery goes through it.
		src := &countingReader{ReaderAt: bytes.NewReader(b)}
		var s scanner
		s.reset(src, 1, fuzzNonce)
		steps := 0
		for off, limit := int64(dataStart), int64(len(b)); off < limit; steps++ {
			kind, data, start, end, err := s.record(off, limit)
			if err == nil {
				if kind == kindRecord {
					check(data)
				}
				off = end
				continue
			}
			next, ok := s.after(start, end, limit, nil)
			if !ok {
				break
			}
			if next <= start {
				t.Fatalf("from %d to %d", start, next)
			}
			off = next
		}
		if steps > len(b)/recordHeader || src.n > 12*int64(len(b))+20*scanBlock {
			t.Fatalf("%d steps, %d bytes read of a file of %d", steps, src.n, len(b))
		}
		// The whole file, and damage to the header as well, as Open does it, but without
		// goroutines, whose coverage varies.
		c := newCrashFS(rand.New(rand.NewPCG(1, 1)))
		_ = c.MkdirAll("d")
		file, _ := c.Create(filepath.Join("d", segmentName(1)))
		copy(b[where%uint32(len(b)):], damage)
		_, _ = file.WriteAt(b, 0)
		j, err := load("d", &Options{FS: c})
		if err != nil {
			t.Fatal(err)
		}
		defer j.Close()
		recs2, _ := readAll(t, mustReader(t, j, "r"))
		for _, data := range recs2 {
			check(data)
		}
	})
}

// forged is a payload of n record headers that are right in all but the check that needs the nonce.
func forged(n int) []byte {
	var b []byte
	for range n {
		b = binary.LittleEndian.AppendUint32(b, 1<<10)
		b = binary.LittleEndian.AppendUint32(b, kindRecord)
		b = binary.LittleEndian.AppendUint64(b, 0x1234567890)
	}
	return b
}

// FuzzCursor reads arbitrary bytes as a cursor's file.
func FuzzCursor(f *testing.F) {
	b := make([]byte, 2*pageSize)
	putSlot(b[:pageSize], pageSize, 2, 7, []byte("state"))
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		var c cursor
		if c.load(b) == nil && int64(len(c.state)) > c.slot {
			t.Fatal("state is larger than its slot")
		}
	})
}

// TestForgedHeaders damages a record whose payload is full of forged headers, first without and
// then with the nonce known to their forger: the scan past it stays linear, and what comes
// after is read.
func TestForgedHeaders(t *testing.T) {
	for _, known := range []bool{false, true} {
		payload := forged(1 << 20 / recordHeader)
		if known {
			bind := binder{seq: 1, nonce: fuzzNonce}
			for i := 0; i < len(payload); i += recordHeader {
				bind.putHeader(payload[i:], kindRecord, 900<<10-i/2&^7, 1, dataStart+recordHeader+int64(i))
			}
		}
		b := segmentBytes(1, fuzzNonce, []byte("first"), payload, []byte("after"))
		b[dataStart+24+recordHeader] ^= 1 // the payload's first byte
		b[dataStart+24] ^= 1              // and its length, so that its end is not known either
		src := &countingReader{ReaderAt: bytes.NewReader(b)}
		var s scanner
		s.reset(src, 1, fuzzNonce)
		next, ok := s.find(dataStart+24+8, int64(len(b)), nil)
		if !ok {
			t.Fatal("nothing was found behind the damage")
		}
		if !known {
			if _, data, _, _, err := s.record(next, int64(len(b))); err != nil || string(data) != "after" {
				t.Errorf("%q, %v", data, err)
			}
		}
		if src.n > 16*int64(len(b)) {
			t.Errorf("known %v: %d bytes were read of a file of %d", known, src.n, len(b))
		}
	}
}

// TestForgedLength: a header that is right in all but a length that no record can have is damage,
// before any memory is taken for it. The file is as long as it says.
func TestForgedLength(t *testing.T) {
	var length uint32 = 1<<31 + 8
	bind := binder{seq: 1, nonce: fuzzNonce}
	b := make([]byte, dataStart+pageSize)
	bind.putHeader(b[dataStart:], kindRecord, int(int32(length)), 0, dataStart)
	var s scanner
	s.reset(endless{bytes.NewReader(b)}, 1, fuzzNonce)
	s.large = func() { t.Error("memory is taken for it") }
	if _, _, _, _, err := s.record(dataStart, dataStart+recordHeader+int64(length)); !errors.Is(err, errNoRecord) {
		t.Error(err)
	}
}

// endless has zeros behind its bytes.
type endless struct{ io.ReaderAt }

func (e endless) ReadAt(b []byte, off int64) (int, error) {
	n, _ := e.ReaderAt.ReadAt(b, off)
	clear(b[n:])
	return len(b), nil
}
