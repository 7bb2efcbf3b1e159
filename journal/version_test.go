// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLaterVersion: a directory that a later version wrote is refused, and left as it is.
func TestLaterVersion(t *testing.T) {
	dir := t.TempDir()
	b := segmentBytes(1, fuzzNonce, []byte("record"))
	binary.LittleEndian.PutUint16(b[8:], formatVersion+1)
	binary.LittleEndian.PutUint32(b[64:], crc32.Checksum(b[:64], castagnoli))
	path := filepath.Join(dir, segmentName(1))
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, nil); !errors.Is(err, errVersion) {
		t.Error(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
	// And the lock is free again.
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	mustOpen(t, dir, nil)
}

// TestLaterCursor: a cursor that a later version wrote is not taken for damaged: to begin again at
// the oldest record would repeat all.
func TestLaterCursor(t *testing.T) {
	dir := t.TempDir()
	j := mustOpen(t, dir, nil)
	mustReader(t, j, "r")
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "cursor-r")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	slot := b[len(b)/2:]
	if string(slot[:8]) != cursorMagic {
		slot = b
	}
	binary.LittleEndian.PutUint32(slot[8:], formatVersion+1)
	binary.LittleEndian.PutUint32(slot[44:], crc32.Checksum(slot[:44], castagnoli))
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, nil); !errors.Is(err, errVersion) || !strings.Contains(err.Error(), path) {
		t.Error(err)
	}
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(after, b) {
		t.Errorf("the cursor was changed: %v", err)
	}
}
