// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/output"
	"github.com/spillwaylog/spillway/internal/window"
	"github.com/spillwaylog/spillway/ring"
)

// abandoned makes a ring as a process leaves it that was killed: events under the tags, which are
// letters, each with a key of its own; mark is what the process had done with them.
func abandoned(t *testing.T, mem, tags string, mark func(r *ring.Ring, all []ring.Record)) {
	t.Helper()
	r, err := ring.Open(&ring.Options{Dir: mem, Name: "test", Identity: []byte("\x00"), Size: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	var h ring.Hint
	for n, tag := range tags {
		if _, err := r.Append(&h, int64(n)+1, event{string(tag), 1, uint32(n)}.payload(nil, 10)); err != nil {
			t.Fatal(err)
		}
	}
	var all []ring.Record
	for len(all) < len(tags) {
		rec, ok, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		if ok {
			all = append(all, rec)
		}
	}
	mark(r, all)
	if err := r.Leave(); err != nil {
		t.Fatal(err)
	}
}

// spoil changes a byte of an event's record in a ring.
func spoil(t *testing.T, path string, n uint32) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(b, binary.BigEndian.AppendUint32([]byte{0xa1, 'n', 0xce}, n))
	if at < 0 {
		t.Fatalf("no event %d", n)
	}
	b[at] ^= 1
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// A keeping is a fake with states, which stores one of each origin before anything is submitted.
type keeping struct{ *fake }

func (d keeping) Resume(save func([]byte) error, states ...[]byte) error {
	return d.ResumeFrom(output.Origin{States: states, Save: save})
}

func (d keeping) ResumeFrom(sources ...output.Origin) error {
	for _, s := range sources {
		if err := s.Save([]byte("resumed")); err != nil {
			return err
		}
	}
	return nil
}

func (d keeping) Submit(c *forward.Chunk, done func(output.Result)) { d.SubmitFrom(0, c, done) }

func (d keeping) SubmitFrom(_ int, c *forward.Chunk, done func(output.Result)) {
	d.fake.Submit(c, func(r output.Result) {
		if r.Err == nil {
			r.State = []byte("later")
		}
		done(r)
	})
}

// What is made again from marks of windows are the same runs with the same ids, but for those that
// are done.
func TestRebuildRuns(t *testing.T) {
	raw := [16]byte{1, 2, 3}
	id := func(n int) (id [idLen]byte) {
		window.RunID(&id, raw, n)
		return id
	}
	// Runs of the window:   0 0 1 2 2 3 4 5 | uncut
	const tags = "aabccabaad"
	type mark struct {
		from, run int // an event, and its run
		to        byte
	}
	for _, tt := range []struct {
		name  string
		marks []mark
		state string // the id whose state was stored
		want  string
		spoil int // an event that cannot be read, if it is not 0
	}{
		{"none is done", []mark{{0, 0, window.RunsToDestination}}, "", "0:aa 1:b 2:cc 3:a 4:b 5:aa ring:d", 0},
		{"some are done", []mark{{0, 0, window.RunsToDestination}}, "2", "3:a 4:b 5:aa ring:d", 0},
		{"all are done", []mark{{0, 0, window.RunsToDestination}}, "5", "ring:d", 0},
		{
			"another window is done",
			[]mark{{0, 0, window.RunsToDestination}},
			"x", "0:aa 1:b 2:cc 3:a 4:b 5:aa ring:d",
			0,
		},
		{"the end did not fit into the spill", []mark{{5, 3, window.RunsToSpill}}, "", "3:a 4:b 5:aa ring:d", 0},
		{
			"just then",
			[]mark{{0, 0, window.RunsToDestination}, {5, 3, window.RunsToSpill}},
			"",
			"0:aa 1:b 2:cc 3:a 4:b 5:aa ring:d", 0,
		},
		{
			"just then, some done",
			[]mark{{0, 0, window.RunsToDestination}, {5, 3, window.RunsToSpill}},
			"1",
			"2:cc 3:a 4:b 5:aa ring:d", 0,
		},
		{
			"and of those too",
			[]mark{{0, 0, window.RunsToDestination}, {5, 3, window.RunsToSpill}},
			"3",
			"4:b 5:aa ring:d", 0,
		},
		{
			"then to the destination",
			[]mark{{5, 3, window.RunsToSpill}, {5, 3, window.RunsToDestination}},
			"",
			"3:a 4:b 5:aa ring:d", 0,
		},
		{
			"one tag each",
			[]mark{{0, 0, window.ToDestination}, {2, 9, window.ToDestination}, {3, 8, window.ToSpill}},
			"",
			"0:aaaaa 9:bb 8:cc ring:d", 0,
		},
		{"a record is spoiled", []mark{{0, 0, window.RunsToDestination}}, "2", "0:aa 1:b 2:c 3:a 4:b 5:aa ring:d", 3},
		{"a run is spoiled", []mark{{0, 0, window.RunsToDestination}}, "2", "0:aa 1:cc 2:a 3:b 4:aa ring:d", 2},
	} {
		for _, states := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/states=%t", tt.name, states), func(t *testing.T) {
				mem := shmDir(t)
				abandoned(t, mem, tags, func(r *ring.Ring, all []ring.Record) {
					last := all[len(tags)-2].Key
					for _, k := range tt.marks {
						label := id(k.run)
						label[idLen-1] = k.to
						r.Put(ring.Mark{First: all[k.from].Key, Last: last, Lane: all[k.from].Lane, Label: label})
					}
					r.Cut(last)
					if tt.state != "" {
						label := [idLen]byte{}
						if _, err := fmt.Sscanf(tt.state, "%d", new(int)); err == nil {
							label = id(int(tt.state[0] - '0'))
						}
						if err := r.SetState(append(label[:], "state"...)); err != nil {
							t.Fatal(err)
						}
					}
				})
				d := &fake{}
				if tt.spoil > 0 {
					spoil(t, filepath.Join(mem, entriesOf(t, mem)[0], "ring"), uint32(tt.spoil))
				}
				f := open(t, d, func(c *Config) {
					if c.Shm, c.Ordered = mem, true; states {
						c.Destination = keeping{d}
					}
				})
				f.close()
				names := map[string]string{}
				for n := range 10 {
					id := id(n)
					names[string(id[:])] = fmt.Sprint(n)
				}
				var got []string
				next := -1
				for _, s := range d.all() {
					name := names[s.id]
					if name == "" {
						name = "ring"
					}
					text := name + ":"
					for _, e := range s.events {
						text += e.tag
						if int(e.n) <= next && tt.name != "one tag each" {
							t.Errorf("%d behind %d", e.n, next)
						}
						next = int(e.n)
					}
					got = append(got, text)
				}
				if got := strings.Join(got, " "); got != tt.want {
					t.Errorf("got  %s\nwant %s", got, tt.want)
				}
				if left := entriesOf(t, mem); len(left) > 0 {
					t.Errorf("left %q", left)
				}
			})
		}
	}
}

// A ring that a process left which gave each tag of a window a mark of its own, as for a
// destination that is not ordered: 60 events under three tags by turns. Its destination had five
// chunks.
func TestGoldenMarks(t *testing.T) {
	const name = "marks.4711.3558e59e8500e108"
	kept := filepath.Join("testdata", "v1", name)
	mem := shmDir(t)
	boot := func() string { // of this machine, or nobody adopts it
		r, err := ring.Open(&ring.Options{Dir: mem, Name: "boot"})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		return r.Owner().BootID
	}()
	dir := filepath.Join(mem, name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	owner, err := os.ReadFile(filepath.Join(kept, "owner"))
	if err != nil {
		t.Fatal(err)
	}
	owner = regexp.MustCompile(`(?m)^boot .*$`).ReplaceAll(owner, []byte("boot "+boot))
	owner = owner[:bytes.Index(owner, []byte("check "))]
	owner = fmt.Appendf(owner, "check %08x\n", crc32.Checksum(owner, crc32.MakeTable(crc32.Castagnoli)))
	if err := os.WriteFile(filepath.Join(dir, "owner"), owner, 0o600); err != nil {
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
	if err := os.WriteFile(filepath.Join(dir, "ring"), b, 0o600); err != nil {
		t.Fatal(err)
	}
	d := &fake{}
	f := open(t, d, func(c *Config) {
		c.Shm, c.Name, c.Identity, c.RingSize, c.Ordered = mem, "marks", "golden", 256<<10, true
	})
	f.close()
	ids := []string{
		"P3tMDefpT60srrvJKZxlOQ==",
		"qIDKP0avy8F1S7/+22u/pA==", "Cdz8Ci9WPVXDOhoIuinXog==", "m6p33d3q0qJJcy9dh6vUoA==",
		"H20+D4MSdfLHblS5Ndg/Tw==", "VQ86/GpgFGPgaE3AF6mSdg==", "8YUJIwsbQZ6t7w6g1rA/rA==",
	}
	came := map[uint32]bool{}
	for i, s := range d.all() {
		if i < len(ids) && s.id != ids[i] {
			t.Errorf("chunk %d is %s, not %s", i, s.id, ids[i])
		}
		last := -1
		for _, e := range s.events {
			if came[e.n] || int(e.n) <= last || e.tag != fmt.Sprint("tag", e.n%3) {
				t.Errorf("%s: %v", s.id, s.events)
			}
			came[e.n], last = true, int(e.n)
		}
	}
	for n := range uint32(60) {
		done := n < 10 || n < 20 && n%3 != 0
		if came[n] == done {
			t.Errorf("event %d came: %t", n, came[n])
		}
	}
	if len(f.told) > 0 {
		t.Errorf("told %v", f.told)
	}
}
