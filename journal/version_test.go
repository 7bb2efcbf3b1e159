// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"os"
	"path/filepath"
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
