// SPDX-License-Identifier: Apache-2.0

package test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// A stream sends chunk after chunk with acks and notes what was acked, until it is told to stop.
type stream struct {
	t      *testing.T
	lane   *lane
	pad    string
	mu     sync.Mutex
	acked  []string
	breaks atomic.Bool // its collector is about to be killed
	stop   chan struct{}
	done   chan struct{}
}

// startStream sends chunks of about size bytes each.
func startStream(t *testing.T, c *collector, name string, size int) *stream {
	s := &stream{
		t: t, lane: c.lane(), pad: strings.Repeat("x", size), stop: make(chan struct{}),
		done: make(chan struct{}),
	}
	go func() {
		defer close(s.done)
		for i := 0; ; i++ {
			select {
			case <-s.stop:
				return
			default:
			}
			e := named(fmt.Sprintf("%s-%d", name, i))
			e.pad = s.pad
			id := newID()
			if _, err := s.lane.conn.Write(packed("disk", id, e.append(nil))); err != nil && s.breaks.Load() {
				return
			} else if err != nil {
				t.Errorf("%s: %v", name, err)
				return
			}
			got, err := readAck(s.lane.acks)
			if err != nil && s.breaks.Load() {
				return
			}
			if err != nil || got != id {
				t.Errorf("%s: ack %q, %v", name, got, err)
				return
			}
			s.mu.Lock()
			s.acked = append(s.acked, e.name)
			s.mu.Unlock()
		}
	}()
	return s
}

func (s *stream) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.acked)
}

// more waits until n more chunks are acked.
func (s *stream) more(n int) {
	s.t.Helper()
	n += s.count()
	eventually(s.t, "the stream goes on", func() bool { return s.count() >= n || s.over() })
}

func (s *stream) over() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}

// end stops the stream and returns what was acked.
func (s *stream) end() []string {
	s.t.Helper()
	close(s.stop)
	eventually(s.t, "the stream ends", s.over)
	return s.acked
}

// TestFullDataDisk fills the disk of the journal: acks stop, a clear line is written, and all goes
// on when there is space.
func TestFullDataDisk(t *testing.T) {
	t.Parallel()
	d := newDisk(t, "64m")
	s, out := newSetup(t)
	s.data = filepath.Join(d.dir, "data")
	// An output that is stuck keeps the journal from being recycled.
	s.to = append(s.to, "stdout:")
	r, w, err := os.Pipe()
	must(t, err)
	defer r.Close()
	s.stdout = w
	c := startCollector(t, s)
	must(t, w.Close())
	st := startStream(t, c, "full", 64<<10)
	st.more(20)
	d.fill()
	c.says("level=ERROR", "no space")
	d.free()
	st.more(20)
	// The disk is smaller than the journal may become: it fills up by itself, until the output
	// moves.
	before := 0
	eventually(t, "the journal fills the disk", func() bool {
		free := space(t, d.dir)
		stands := st.count() == before
		before = st.count()
		return stands && free < 16<<20
	})
	go drain(r)
	st.more(20)
	names := st.end()
	waitLines(t, out, len(names))
	c.stop()
	wantNames(t, readLines(t, out), names...)
}

// TestFullDataDiskCrash kills the collector while the disk is full, starts it while it is full, and
// frees it then.
func TestFullDataDiskCrash(t *testing.T) {
	t.Parallel()
	d := newDisk(t, "64m")
	s, out := newSetup(t)
	s.data = filepath.Join(d.dir, "data")
	c := startCollector(t, s)
	st := startStream(t, c, "before", 16<<10)
	st.more(50)
	names := st.end()
	d.fill()
	c.kill()
	c = launch(t, s)
	eventually(t, "the collector starts, or says why not", func() bool {
		return c.over() || c.log.find("msg=listening") != ""
	})
	if c.over() { // not to start on a full disk is allowed, if it says so
		if text := c.log.String(); !strings.Contains(text, "no space") || !strings.Contains(text, d.dir) {
			t.Errorf("no clear error on a full disk:\n%s", text)
		}
	}
	c.kill()
	d.free()
	c = startCollector(t, s)
	st = startStream(t, c, "after", 16<<10)
	st.more(50)
	names = append(names, st.end()...)
	waitLines(t, out, len(names))
	c.stop()
	wantNames(t, readLines(t, out), names...)
}

// TestFullOutputDisk fills the disk of the output file: events are acked, stay in the journal, and
// are written when there is space, each once and none torn.
func TestFullOutputDisk(t *testing.T) {
	t.Parallel()
	for _, killed := range []bool{false, true} {
		t.Run(fmt.Sprintf("killed=%t", killed), func(t *testing.T) {
			d := newDisk(t, "1m")
			s, _ := newSetup(t)
			s.to = []string{"file://" + d.dir + "/out/{tag}.jsonl"}
			c := startCollector(t, s)
			st := startStream(t, c, "full", 10_000)
			c.says("level=ERROR", "no space", d.dir)
			st.more(50)
			names := st.end()
			if killed {
				c.kill()
				c = startCollector(t, s)
				c.says("level=ERROR", "no space", d.dir)
			}
			d.remount("size=256m")
			waitLines(t, filepath.Join(d.dir, "out"), len(names))
			c.stop()
			wantNames(t, readLines(t, filepath.Join(d.dir, "out")), names...)
		})
	}
}

// TestReadOnlyOutput has the output's file system turn read-only and back.
func TestReadOnlyOutput(t *testing.T) {
	t.Parallel()
	d := newDisk(t, "64m")
	s, _ := newSetup(t)
	out := filepath.Join(d.dir, "out")
	s.to = []string{"file://" + out + "/{tag}.jsonl"}
	c := startCollector(t, s)
	must(t, os.Mkdir(out, 0o700))
	d.remount("ro")
	st := startStream(t, c, "ro", 1000)
	c.says("level=ERROR", "read-only", d.dir)
	st.more(10)
	d.remount("rw")
	st.more(10)
	names := st.end()
	waitLines(t, out, len(names))
	c.stop()
	wantNames(t, readLines(t, out), names...)
	d.remount("ro")
	c = launch(t, s)
	if code := c.wait(); code != 1 {
		t.Errorf("a start with an output that cannot be: exit code %d, want 1", code)
	}
	if text := c.log.String(); !strings.Contains(text, s.to[0]) || !strings.Contains(text, "read-only") {
		t.Errorf("no clear error: %s", text)
	}
}

// TestReadOnlyData wants a start that fails with a sentence that names the directory.
func TestReadOnlyData(t *testing.T) {
	t.Parallel()
	d := newDisk(t, "64m")
	s, _ := newSetup(t)
	s.data = filepath.Join(d.dir, "data")
	d.remount("ro")
	c := launch(t, s)
	if code := c.wait(); code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	if text := c.log.String(); !strings.Contains(text, s.data) || !strings.Contains(text, "read-only") {
		t.Errorf("no clear error: %s", text)
	}
	d.remount("rw")
	startCollector(t, s).stop()
}

// TestDataInUse starts a second collector on the data directory of a living one; of a dead one it
// may be taken at once.
func TestDataInUse(t *testing.T) {
	t.Parallel()
	s, out := newSetup(t)
	c := startCollector(t, s)
	l := c.lane()
	second := launch(t, s)
	if code := second.wait(); code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	if text := second.log.String(); !strings.Contains(text, s.data) ||
		!strings.Contains(text, fmt.Sprint(c.cmd.Process.Pid)) {
		t.Errorf("the error names not both directory and process %d: %s", c.cmd.Process.Pid, text)
	}
	id := newID()
	l.send(packed("a", id, named("undisturbed").append(nil)), id)
	c.kill()
	c = startCollector(t, s)
	id = newID()
	c.lane().send(packed("a", id, named("after").append(nil)), id)
	waitLines(t, out, 2)
	c.stop()
	wantNames(t, readLines(t, out), "undisturbed", "after")
}

// space is the free space of a file system in bytes.
func space(t testing.TB, dir string) int64 {
	t.Helper()
	out, err := exec.Command("df", "--output=avail", "-B1", dir).Output()
	must(t, err)
	var n int64
	_, err = fmt.Sscan(strings.TrimSpace(string(out[bytes.IndexByte(out, '\n')+1:])), &n)
	must(t, err)
	return n
}

func drain(f *os.File) {
	buf := make([]byte, 64<<10)
	for {
		if _, err := f.Read(buf); err != nil {
			return
		}
	}
}
