// SPDX-License-Identifier: Apache-2.0

package output

import (
	"bufio"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/internal/files"
	"github.com/spillwaylog/spillway/internal/needs"
)

// In the environment these make the test binary the process that writes, and may be killed: the
// directory, the pattern of the file's name, and how large files get.
const (
	childDir  = "SPILLWAY_OUTPUT_CHILD"
	childName = "SPILLWAY_OUTPUT_NAME"
	childSize = "SPILLWAY_OUTPUT_SIZE"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		if err := child(dir, os.Getenv(childName)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(needs.Main(m))
}

const (
	childChunks = 1500
	childPad    = 100
)

// childChunk returns the numbers of the events of a chunk.
func childChunk(i int) (from, n int) {
	return i*50 + i%7, 50 + (i+1)%7 - i%7
}

var childEvents = func() int { from, _ := childChunk(childChunks); return from }()

// child delivers chunks, up to eight at a time, and keeps in one file what a ring keeps in its
// header: how many are done, and the state.
func child(dir, name string) error {
	store := filepath.Join(dir, fmt.Sprintf("store.%x", name))
	b, err := os.ReadFile(store)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	at := 0
	if len(b) > 0 {
		at = int(binary.LittleEndian.Uint64(b))
		b = b[8:]
	}
	stored, written := at, at
	keep := func(state []byte) error {
		b := append(binary.LittleEndian.AppendUint64(nil, uint64(stored)), state...)
		if err := os.WriteFile(store+".new", b, 0o600); err != nil {
			return err
		}
		return os.Rename(store+".new", store)
	}
	size, err := strconv.ParseInt(os.Getenv(childSize), 10, 64)
	if err != nil {
		return err
	}
	d, err := NewFile(&FileConfig{
		Path:   filepath.Join(dir, name),
		Rotate: files.Rotation{Size: size, Compress: "gzip"},
		Trip:   Trip{Report: func(err error) { fmt.Fprintln(os.Stderr, err) }},
	})
	if err != nil {
		return err
	}
	if err := d.(Resumer).Resume(keep, b); err != nil {
		return err
	}
	fmt.Println("begins at", at)
	window := make(chan struct{}, 8)
	var mu sync.Mutex
	var failed error
	for i := at; i < childChunks; i++ {
		window <- struct{}{}
		from, n := childChunk(i)
		d.Submit(padded("app", from, n, childPad), func(r Result) {
			mu.Lock()
			defer mu.Unlock()
			switch {
			case r.Err != nil || written != i:
				failed = fmt.Errorf("chunk %d after %d: %+v", i, written, r)
			case r.State == nil:
				written++
			default:
				written++
				stored = written
				failed = errors.Join(failed, keep(r.State))
			}
			<-window
		})
	}
	for range cap(window) {
		window <- struct{}{}
	}
	return errors.Join(failed, d.Close(context.Background()))
}

// runChild starts a child and returns when it has begun.
func runChild(t *testing.T, dir, name string, size int) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	must(t, err)
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), childDir+"="+dir, childName+"="+name, fmt.Sprintf("%s=%d", childSize, size))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatalf("the child said nothing: %v", err)
	}
	return cmd
}

// count reads all files of a pattern, none of them larger than size, and returns how often each
// event is there.
func count(t *testing.T, pattern string, size int) []int {
	t.Helper()
	seen := make([]int, childEvents)
	paths, err := filepath.Glob(pattern)
	must(t, err)
	for _, path := range paths {
		f, err := os.Open(path)
		must(t, err)
		defer f.Close()
		var r io.Reader = f
		switch filepath.Ext(path) {
		case ".tmp":
			continue
		case ".gz":
			if _, err := os.Stat(strings.TrimSuffix(path, ".gz")); err == nil {
				continue // killed before it was removed
			}
			r, err = gzip.NewReader(f)
			must(t, err)
		}
		b, err := io.ReadAll(r)
		must(t, err)
		if len(b) > size {
			t.Fatalf("%s: %d bytes", path, len(b))
		}
		last := -1
		for line := range strings.Lines(string(b)) {
			i := -1
			if _, number, ok := strings.Cut(line, `"n":`); ok {
				_, _ = fmt.Sscanf(number, "%d", &i)
			}
			if i < 0 || i >= len(seen) || line != lineOf("app", i, childPad) {
				t.Fatalf("%s: %q", path, line)
			}
			if i <= last && seen[i] == 0 {
				t.Fatalf("%s: event %d behind %d", path, i, last)
			}
			last = i
			seen[i]++
		}
	}
	return seen
}

// TestFileSIGKILL kills real processes at random moments, while they write, rotate and compress.
func TestFileSIGKILL(t *testing.T) {
	needs.Time(t, "starts processes")
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for what, name := range map[string]string{"one": "app.jsonl", "each its own": "app.{pid}.jsonl"} {
		t.Run(what, func(t *testing.T) {
			const size = 20_000 // several files for what is written at once
			dir := t.TempDir()
			kills := 0
			for done := false; !done; {
				cmd := runChild(t, dir, name, size)
				if kills < 25 {
					<-time.After(time.Duration(r.IntN(25_000)) * time.Microsecond)
					_ = cmd.Process.Kill() // or it has ended
				}
				if done = cmd.Wait() == nil; !done {
					kills++
				}
				if kills > 25 {
					t.Fatal("the child fails")
				}
			}
			t.Logf("%d kills", kills)
			for i, n := range count(t, filepath.Join(dir, "app*"), size) {
				if n != 1 {
					t.Fatalf("event %d is there %d times", i, n)
				}
			}
		})
	}
}

// TestFileTwoProcesses: processes that share a file rotate and compress it, and each line of both
// is there once.
func TestFileTwoProcesses(t *testing.T) {
	needs.Time(t, "starts processes")
	const size = 200_000
	dir := t.TempDir()
	// The same file under two names of the pattern, so that each has a store of its own.
	a, b := runChild(t, dir, "app.jsonl", size), runChild(t, dir, "./app.jsonl", size)
	must(t, a.Wait())
	must(t, b.Wait())
	for i, n := range count(t, filepath.Join(dir, "app*"), 2*size) {
		if n != 2 {
			t.Fatalf("event %d is there %d times", i, n)
		}
	}
}
