// SPDX-License-Identifier: Apache-2.0

package spill

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestStateStays: a state that was asked for is not written over by the next one, which may be
// stored at any time.
func TestStateStays(t *testing.T) {
	sp, err := sweptFolder(t.TempDir()).Make("", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	defer sp.Close()
	if err := sp.Save([]byte("one")); err != nil {
		t.Fatal(err)
	}
	one := sp.State()
	if err := sp.Save([]byte("two")); err != nil {
		t.Fatal(err)
	}
	if string(one) != "one" || string(sp.State()) != "two" {
		t.Errorf("%q, then %q", one, sp.State())
	}
}

// TestLongOwner: a file of any length in place of an owner's is not read.
func TestLongOwner(t *testing.T) {
	dir := t.TempDir()
	text := append([]byte(`{"pid":1}`), bytes.Repeat([]byte(" "), maxOwner)...)
	for _, n := range []int{maxOwner, maxOwner + 1} {
		if err := os.WriteFile(filepath.Join(dir, ownerFile), text[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := (reach{}).readOwner(dir); (err == nil) != (n == maxOwner) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
}
