// SPDX-License-Identifier: Apache-2.0

package files

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/internal/needs"
)

// In the environment these make the test binary the process that is killed: the directory, and the
// size at which it rotates.
const (
	childDir  = "SPILLWAY_FILES_CHILD"
	childSize = "SPILLWAY_FILES_SIZE"
)

// childHolds makes it one that holds what it got open until its standard input ends.
const childHolds = "SPILLWAY_FILES_HOLDS"

func TestMain(m *testing.M) {
	if os.Getenv(childHolds) != "" {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}
	if dir := os.Getenv(childDir); dir != "" {
		if err := child(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(needs.Main(m))
}

const (
	childLines = 60_000
	childTags  = 5
)

func childLine(i int) (tag, line string) {
	return fmt.Sprintf("t%d", i%childTags), fmt.Sprintf("{%d %s}\n", i, strings.Repeat("x", i*7%300))
}

// child appends numbered lines, and keeps its position and state in one file that it replaces as a
// whole.
func child(dir string) error {
	cursor := filepath.Join(dir, "cursor")
	b, err := os.ReadFile(cursor)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	position := 0
	if len(b) > 0 {
		position = int(binary.LittleEndian.Uint64(b))
		b = b[8:]
	}
	commit := func(at int, state []byte) error {
		b := append(binary.LittleEndian.AppendUint64(nil, uint64(at)), state...)
		if err := os.WriteFile(cursor+".new", b, 0o600); err != nil {
			return err
		}
		return os.Rename(cursor+".new", cursor)
	}
	synced := position
	size, err := strconv.ParseInt(os.Getenv(childSize), 10, 64)
	if err != nil {
		return err
	}
	pattern, rotation := "{tag}.{pid}.jsonl", Rotation{}
	if size > 0 {
		pattern = "{tag}.jsonl"
		rotation = Rotation{Size: size, Compress: []string{"gzip", "zstd"}[os.Getpid()%2]}
	}
	s, err := Open(filepath.Join(dir, pattern), b, &Options{
		MaxOpen: 3, Buffer: 8 << 10, Memory: 100 << 10, Rotation: rotation,
		Record: func(state []byte) error { return commit(synced, state) },
	})
	if err != nil {
		return err
	}
	fmt.Println("begins at", position)
	for i := position; i < childLines; i++ {
		tag, line := childLine(i)
		if err := extend(s, tag, 0, line); err != nil {
			return err
		}
		if i%1000 == 999 || i == childLines-1 {
			state, err := s.Sync()
			if err != nil {
				return err
			}
			synced = i + 1
			if err := commit(synced, state); err != nil {
				return err
			}
		}
	}
	return s.Close()
}

// TestSIGKILL kills real processes at random moments.
func TestSIGKILL(t *testing.T) {
	needs.Time(t, "starts processes")
	t.Run("a file each", func(t *testing.T) { testSIGKILL(t, 0) })
	t.Run("rotated", func(t *testing.T) { testSIGKILL(t, 20_000) }) // several times between two commits
}

func testSIGKILL(t *testing.T, size int64) {
	exe, err := os.Executable()
	must(t, err)
	dir := t.TempDir()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	kills := 0
	for done := false; !done; {
		cmd := exec.Command(exe)
		cmd.Env = append(os.Environ(), childDir+"="+dir, fmt.Sprintf("%s=%d", childSize, size))
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		must(t, err)
		must(t, cmd.Start())
		if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
			t.Fatalf("the child said nothing: %v", err)
		}
		if kills < 30 {
			<-time.After(time.Duration(r.IntN(30_000)) * time.Microsecond)
			_ = cmd.Process.Kill() // or it has ended
		}
		done = cmd.Wait() == nil
		if !done {
			kills++
		}
		if kills > 30 {
			t.Fatal("the child fails")
		}
	}
	t.Logf("%d kills", kills)
	paths, err := filepath.Glob(filepath.Join(dir, "*.jsonl*"))
	must(t, err)
	seen := make([]int, childLines)
	for _, path := range paths {
		tag := filepath.Base(path)[:2]
		text := read(t, path)
		if filepath.Ext(path) == ".tmp" {
			continue
		}
		if plain, packed := cutPacked(path); packed {
			if slices.Contains(paths, plain) {
				continue // killed before it was removed
			}
			text = unpack(t, text)
		}
		if size > 0 && int64(len(text)) > size {
			t.Fatalf("%s has %d bytes", path, len(text))
		}
		last := -1
		for line := range strings.Lines(string(text)) {
			i := -1
			if _, err := fmt.Sscanf(line, "{%d ", &i); err != nil || i < 0 || i >= childLines {
				t.Fatalf("%s: %q: %v", path, line, err)
			}
			if wantTag, want := childLine(i); want != line || wantTag != tag || i <= last {
				t.Fatalf("%s: line %d behind line %d: %q", path, i, last, line)
			}
			last = i
			seen[i]++
		}
	}
	for i, n := range seen {
		if n != 1 {
			t.Fatalf("line %d is there %d times", i, n)
		}
	}
}
