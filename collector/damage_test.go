// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"os"
	"path/filepath"
	"testing"
)

// TestOutputAddedBehindDamage: an output that is new begins where the journal can be read, though the one furthest behind
// stands where that was lost.
func TestOutputAddedBehindDamage(t *testing.T) {
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	o := &Options{Dir: data, To: []string{fileURL(filepath.Join(dir, "one"))}}
	r := run(t, o)
	send(t, r.client(t), numbered("t", 0, 5))
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	segments, err := filepath.Glob(filepath.Join(data, "journal", "seg-*"))
	if err != nil || len(segments) == 0 {
		t.Fatal(segments, err)
	}
	for _, path := range segments {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteAt([]byte("damaged!"), 0); err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
	o.To = append(o.To, fileURL(filepath.Join(dir, "two")))
	r = run(t, o)
	send(t, r.client(t), numbered("t", 5, 5))
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	wantFile(t, filepath.Join(dir, "one"), numberedLines("t", 0, 10))
	wantFile(t, filepath.Join(dir, "two"), numberedLines("t", 5, 5))
}
