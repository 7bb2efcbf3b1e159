// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/internal/codes"
	"github.com/spillwaylog/spillway/journal"
)

// TestOutputAddedBehindDamage: an output that is new begins where the journal can be read, though
// the one furthest behind stands where that was lost.
func TestOutputAddedBehindDamage(t *testing.T) {
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	o := &Config{Dir: data, Outputs: Ends(fileURL(filepath.Join(dir, "one")))}
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
	o.Outputs = append(o.Outputs, End{URL: fileURL(filepath.Join(dir, "two"))})
	r = run(t, o)
	send(t, r.client(t), numbered("t", 5, 5))
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	wantFile(t, filepath.Join(dir, "one"), numberedLines("t", 0, 10))
	wantFile(t, filepath.Join(dir, "two"), numberedLines("t", 5, 5))
}

// TestCursorDeleted: an output whose cursor was deleted says that it begins anew, and how much it
// gets again; one that is new, and one that has its cursor, say nothing.
func TestCursorDeleted(t *testing.T) {
	dir := t.TempDir()
	data, file := filepath.Join(dir, "data"), filepath.Join(dir, "f.jsonl")
	o := &Config{Dir: data, Outputs: []End{{Name: "f", URL: fileURL(file)}}}
	for i := range 4 {
		log := make(messages, 1000)
		o.Log = slog.New(slog.NewJSONHandler(log, nil))
		r := run(t, o)
		if i == 0 {
			send(t, r.client(t), numbered("t", 0, 5))
		}
		if err := r.stop(); err != nil {
			t.Fatal(err)
		}
		var told []map[string]any
		for len(log) > 0 {
			if line := <-log; line["code"] == string(codes.OutputAnew) {
				told = append(told, line)
			}
		}
		if want := i == 2; len(told) > 0 != want {
			t.Fatalf("start %d: %v", i, told)
		}
		for _, line := range told {
			if n, ok := line["behind_bytes"].(float64); line["output"] != "f" || !ok || n == 0 {
				t.Error(line)
			}
		}
		if i == 1 {
			if err := os.Remove(filepath.Join(data, "journal", "cursor-out.f")); err != nil {
				t.Fatal(err)
			}
		}
	}
	wantFile(t, file, numberedLines("t", 0, 5)+numberedLines("t", 0, 5))
}

// TestFoundLetsGo: the cursor that counts what was found is removed, though that fails at first.
func TestFoundLetsGo(t *testing.T) {
	dir := t.TempDir()
	o := &Config{
		Dir: dir, Outputs: Ends("stdout:"), Stdout: brokenWriter{}, Drain: 50 * time.Millisecond,
		Inputs: Ends("forward://127.0.0.1:0"), Log: logTo(testWriter{t}),
	}
	r := run(t, o)
	send(t, r.client(t), numbered("t", 0, 10))
	_ = r.stop() // what its output says of its end
	c, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	// Something in the way, which cannot be removed.
	path := filepath.Join(dir, "journal", "cursor-"+startBacklogCursor)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(path, "full"), 0o700); err != nil {
		t.Fatal(err)
	}
	told := make(chan error, 100)
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	go func() {
		if err := <-told; err != nil {
			_ = os.RemoveAll(path)
		}
	}()
	c.startBacklog.run(ctx, c.journal, func(err error) { told <- err })
	if names := c.journal.Cursors(); slices.Contains(names, startBacklogCursor) {
		t.Errorf("the journal still has %q", names)
	}
}

// TestReplayGoesOnBehindWhatTheDiskDoesNotGive: a collector must start, though a place in the
// journal cannot be read.
func TestReplayGoesOnBehindWhatTheDiskDoesNotGive(t *testing.T) {
	f, j := openTestRepeats(t, t.TempDir())
	defer j.Close()
	defer f.close()
	a, b := chunk("a", "t", "p", "e", 1), chunk("b", "t", "p", "e", 1)
	put(t, f, j, a)
	put(t, f, j, b)
	failures := 0
	fresh, err := newRepeats(f.key)
	if err != nil {
		t.Fatal(err)
	}
	f.repeats = fresh
	err = f.replay(func() (journal.Record, bool, error) {
		if failures < 5 { // as often as a reader of the journal tells before it skips
			failures++
			return journal.Record{}, false, syscall.EIO
		}
		return f.cursor.TryNext()
	})
	if err != nil {
		t.Fatal(err)
	}
	if v := put(t, f, j, chunk("b", "t", "p", "e", 2)); v != repeat {
		t.Errorf("got %v, want repeat", v)
	}
	if err := f.replay(func() (journal.Record, bool, error) {
		return journal.Record{}, false,
			syscall.EIO
	}); !errors.Is(err, syscall.EIO) {
		t.Errorf("a disk that gives nothing: %v", err)
	}
}
