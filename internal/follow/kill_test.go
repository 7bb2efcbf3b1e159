// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"bufio"
	"compress/gzip"
	"context"
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

	"github.com/spillwaylog/spillway/internal/files"
	"github.com/spillwaylog/spillway/internal/needs"
	"github.com/spillwaylog/spillway/internal/output"
	"github.com/spillwaylog/spillway/internal/step"
	"github.com/spillwaylog/spillway/journal"
)

// In the environment these make the test binary the process that appends and follows, and may be
// killed: its directory, and the size at which files are rotated, or sifts: then steps run.
const (
	childDir  = "SPILLWAY_FOLLOW_CHILD"
	childSize = "SPILLWAY_FOLLOW_SIZE"
)

const (
	childChunks = 4000
	childTags   = 5
)

// childChunk is the number of the first event of a chunk, and how many there are.
func childChunk(i int) (first, n int) { return i*20 + i%7, 20 + (i+1)%7 - i%7 }

// child appends what an earlier child has not, follows all of it into files, and ends when it has
// caught up.
func child(dir string, size int64) error {
	j, err := journal.Open(filepath.Join(dir, "journal"),
		&journal.Options{SegmentBytes: 256 << 10, Report: func(err error) {
			if !errors.Is(err, journal.ErrCorrupt) { // a record cut short where the last child died
				fmt.Fprintln(os.Stderr, err)
			}
		}})
	if err != nil {
		return err
	}
	next, err := appended(j)
	if err != nil {
		return err
	}
	reader, err := j.Reader("out")
	if err != nil {
		return err
	}
	eager := size != 0 // files are rotated between commits, and steps remember more with each
	f := New(&Config{
		Reader: reader, Eager: eager, Sift: childSifter(size),
		Report: func(err error) { fmt.Fprintln(os.Stderr, err) }, Open: func() (output.Output, error) {
			return output.NewFile(&output.FileConfig{
				Path: filepath.Join(dir, "{tag}.jsonl"), Sync: true,
				Rotate: files.Rotation{Size: max(size, 0), Compress: map[bool]string{true: "gzip"}[size > 0]},
				Trip:   output.Trip{Report: func(err error) { fmt.Fprintln(os.Stderr, err) }},
			})
		},
	})
	fmt.Println("begins at", next)
	drain, ended := context.WithCancel(context.Background())
	defer ended()
	over := make(chan error)
	go func() { over <- f.Run(context.Background(), drain) }()
	for i := next; i < childChunks; i++ {
		first, n := childChunk(i)
		c := numbered(fmt.Sprint("tag", i%childTags), first, n)
		if size == sifts {
			c = kinded(c.Tag, first, n)
		}
		p, err := j.Append(c.AppendHead(nil), c.Entries, c.AppendTail(nil))
		if err == nil && i%50 == 0 {
			err = j.Sync(context.Background(), p)
		}
		if err != nil {
			return err
		}
		if i%10 == 0 { // so that there is something to kill for a while
			<-time.After(time.Millisecond)
		}
	}
	if err := j.Sync(context.Background(), j.Stats().Last); err != nil {
		return err
	}
	ended()
	return errors.Join(<-over, j.Close())
}

// sifts has the child follow by routes: tag0 is for nobody, tag1 is not changed, of tag3 the first
// event of a kind passes, of tag4 so many, and of tag2 steps make what belongs into a file a kind.
const (
	sifts     = -1
	throttled = 1000
)

func childSifter(size int64) *step.Sifter {
	if size != sifts {
		return nil
	}
	r, err := step.Read([]step.Route{
		{Match: "tag0"},
		{Match: "tag1", To: []string{"o"}},
		{Match: "tag3", To: []string{"o"}, Do: []step.Step{
			{Dedup: &step.Dedup{Window: time.Hour, By: []string{"k"}}},
			{Remove: []string{"k"}},
		}},
		{Match: "tag4", To: []string{"o"}, Do: []step.Step{{Throttle: &step.Throttle{
			Events: throttled, Per: time.Hour,
			By: []string{"k"},
		}}, {Remove: []string{"k"}}}},
		{Match: "**", To: []string{"o"}, Do: []step.Step{
			{Drop: "k == 6"},
			{Tag: "kind{k|5}"},
			{Remove: []string{"k"}},
		}},
	}, []string{"o"}, 1<<20, nil)
	if err != nil {
		panic(err)
	}
	return r.For("o")
}

// sifted is what belongs into which files.
func sifted() map[string][]int {
	want := map[string][]int{"tag0": nil}
	seen := [5]map[int]int{3: {}, 4: {}} // by tag and kind
	for i := range childChunks {
		first, n := childChunk(i)
		for k := first; k < first+n; k++ {
			switch tag := i % childTags; {
			case tag == 1:
				want["tag1"] = append(want["tag1"], k)
			case tag == 3 || tag == 4:
				if seen[tag][kindOf(k)]++; seen[tag][kindOf(k)] <= []int{3: 1, 4: throttled}[tag] {
					name := fmt.Sprint("tag", tag)
					want[name] = append(want[name], k)
				}
			case tag > 1:
				name := fmt.Sprint("kind", kindOf(k))
				want[name] = append(want[name], k)
			}
		}
	}
	want["kind6"] = nil
	return want
}

// appended is the number of the first chunk that is not in the journal: a cursor of its own holds
// where that is known.
func appended(j *journal.Journal) (next int, err error) {
	r, err := j.Reader("appended")
	if err != nil {
		return 0, err
	}
	defer r.Close()
	if _, state := r.Committed(); len(state) > 0 {
		if next, err = strconv.Atoi(string(state)); err != nil {
			return 0, err
		}
	}
	for {
		_, ok, err := r.TryNext()
		if err != nil {
			return 0, err
		}
		if !ok {
			return next, r.Commit(r.Pos(), fmt.Append(nil, next))
		}
		next++
	}
}

// TestSIGKILL kills real processes at random moments, while they append, follow, write, rotate and
// compress: each line is there once, in the order of its tag.
func TestSIGKILL(t *testing.T) {
	if dir := os.Getenv(childDir); dir != "" {
		size, err := strconv.ParseInt(os.Getenv(childSize), 10, 64)
		must(t, err)
		must(t, child(dir, size))
		return
	}
	needs.Time(t, "starts processes")
	for _, size := range []int64{0, 20_000, sifts} {
		t.Run(fmt.Sprint("max_size=", size), func(t *testing.T) {
			seeds(t, 1, 2, func(t *testing.T, r *rand.Rand) { killed(t, r, size) })
		})
	}
}

func killed(t *testing.T, r *rand.Rand, size int64) {
	dir := t.TempDir()
	exe, err := os.Executable()
	must(t, err)
	kills, most := 0, 30
	for done := false; !done; {
		cmd := exec.Command(exe, "-test.run=^TestSIGKILL$")
		cmd.Env = append(os.Environ(), childDir+"="+dir, childSize+"="+strconv.FormatInt(size, 10))
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		must(t, err)
		must(t, cmd.Start())
		if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
			t.Fatalf("the child said nothing: %v", err)
		}
		if kills < most {
			<-time.After(time.Duration(r.IntN(60_000)) * time.Microsecond)
			_ = cmd.Process.Kill() // or it has ended
		}
		if done = cmd.Wait() == nil; !done {
			kills++
		}
		if kills > most {
			t.Fatal("the child fails")
		}
	}
	rotated, err := filepath.Glob(filepath.Join(dir, "*-*"))
	must(t, err)
	if size > 0 && len(rotated) == 0 {
		t.Error("nothing was rotated")
	}
	t.Logf("%d kills, %d rotated files", kills, len(rotated))
	if size == sifts {
		for name, want := range sifted() {
			if got := lineNumbers(t, filepath.Join(dir, name+".jsonl")); !slices.Equal(got, want) {
				t.Errorf("%s: %s", name, difference(got, want))
			}
		}
		return
	}
	for tag := range childTags {
		var want, got []int
		for i := tag; i < childChunks; i += childTags {
			first, n := childChunk(i)
			for k := range n {
				want = append(want, first+k)
			}
		}
		for _, path := range inOrder(t, filepath.Join(dir, fmt.Sprintf("tag%d", tag))) {
			got = append(got, lineNumbers(t, path)...)
		}
		if !slices.Equal(got, want) {
			t.Errorf("tag%d: %s", tag, difference(got, want))
		}
	}
}

// inOrder are the files of a name, the oldest first.
func inOrder(t *testing.T, base string) []string {
	t.Helper()
	rotated, err := filepath.Glob(base + "-*")
	must(t, err)
	slices.Sort(rotated)
	rotated = slices.DeleteFunc(rotated, func(path string) bool {
		plain, compressed := strings.CutSuffix(path, ".gz")
		_, err := os.Stat(plain)
		return filepath.Ext(path) == ".tmp" || compressed && err == nil // killed before it was removed
	})
	return append(rotated, base+".jsonl")
}

func lineNumbers(t *testing.T, path string) (all []int) {
	t.Helper()
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	must(t, err)
	defer f.Close()
	var r io.Reader = f
	if filepath.Ext(path) == ".gz" {
		r, err = gzip.NewReader(f)
		must(t, err)
	}
	b, err := io.ReadAll(r)
	must(t, err)
	for line := range strings.Lines(string(b)) {
		_, number, _ := strings.Cut(line, `"n":`)
		n, err := strconv.Atoi(strings.TrimSuffix(number, "}\n"))
		if err != nil {
			t.Errorf("%s: %q", path, line)
		}
		all = append(all, n)
	}
	return all
}

// difference says what distinguishes two lists of events.
func difference(got, want []int) string {
	count := map[int]int{}
	for _, n := range got {
		count[n]++
	}
	missing, repeated := 0, 0
	for _, n := range want {
		missing += max(0, 1-count[n])
		repeated += max(0, count[n]-1)
	}
	i := 0
	for i < len(got) && i < len(want) && got[i] == want[i] {
		i++
	}
	return fmt.Sprintf("%d events, want %d; %d are missing, %d repeated; they differ at %d: %v, want %v",
		len(got), len(want), missing, repeated, i,
		got[min(i, len(got)):min(i+3, len(got))], want[min(i, len(want)):min(i+3, len(want))])
}
