// SPDX-License-Identifier: Apache-2.0

package collector

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

	"github.com/spillwaylog/spillway/test/internal/rig"
)

// A stream sends chunk after chunk with acks and notes what was acked, until it is told to stop.
type stream struct {
	t      *testing.T
	lane   *rig.Lane
	pad    string
	mu     sync.Mutex
	acked  []string
	breaks atomic.Bool // its collector is about to be killed
	stop   chan struct{}
	done   chan struct{}
}

// startStream sends chunks of about size bytes each.
func startStream(t *testing.T, c *rig.Collector, name string, size int) *stream {
	s := &stream{
		t: t, lane: c.Lane(), pad: strings.Repeat("x", size), stop: make(chan struct{}),
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
			e := rig.Named(fmt.Sprintf("%s-%d", name, i))
			e.Pad = s.pad
			id := rig.NewID()
			if _, err := s.lane.Conn.Write(rig.Packed("disk", id, e.Append(nil))); err != nil && s.breaks.Load() {
				return
			} else if err != nil {
				t.Errorf("%s: %v", name, err)
				return
			}
			got, err := rig.ReadAck(s.lane.Acks)
			if err != nil && s.breaks.Load() {
				return
			}
			if err != nil || got != id {
				t.Errorf("%s: ack %q, %v", name, got, err)
				return
			}
			s.mu.Lock()
			s.acked = append(s.acked, e.Name)
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
	rig.Eventually(s.t, "the stream goes on", func() bool { return s.count() >= n || s.over() })
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
	rig.Eventually(s.t, "the stream ends", s.over)
	return s.acked
}

// TestFullDataDisk fills the disk of the journal: acks stop, a clear line is written, and all goes
// on when there is space.
func TestFullDataDisk(t *testing.T) {
	t.Parallel()
	d := rig.NewDisk(t, "64m")
	s, out := rig.NewSetup(t)
	s.Data = filepath.Join(d.Dir, "data")
	// An output that is stuck keeps the journal from being recycled.
	s.To = append(s.To, "stdout:")
	r, w, err := os.Pipe()
	rig.Must(t, err)
	defer r.Close()
	s.Stdout = w
	c := rig.StartCollector(t, s)
	rig.Must(t, w.Close())
	st := startStream(t, c, "full", 64<<10)
	st.more(20)
	d.Fill()
	c.Says("level=ERROR", "no space")
	d.Free()
	st.more(20)
	// The disk is smaller than the journal may become: it fills up by itself, until the output
	// moves.
	before := 0
	rig.Eventually(t, "the journal fills the disk", func() bool {
		free := space(t, d.Dir)
		stands := st.count() == before
		before = st.count()
		return stands && free < 16<<20
	})
	go drain(r)
	st.more(20)
	names := st.end()
	rig.WaitLines(t, out, len(names))
	c.Stop()
	rig.WantNames(t, rig.ReadLines(t, out), names...)
}

// TestFullDataDiskCrash kills the collector while the disk is full, starts it while it is full, and
// frees it then.
func TestFullDataDiskCrash(t *testing.T) {
	t.Parallel()
	d := rig.NewDisk(t, "64m")
	s, out := rig.NewSetup(t)
	s.Data = filepath.Join(d.Dir, "data")
	c := rig.StartCollector(t, s)
	st := startStream(t, c, "before", 16<<10)
	st.more(50)
	names := st.end()
	d.Fill()
	c.Kill()
	c = rig.Launch(t, s)
	rig.Eventually(t, "the collector starts, or says why not", func() bool {
		return c.Over() || c.Log.Find("msg=listening") != ""
	})
	if c.Over() { // not to start on a full disk is allowed, if it says so
		if text := c.Log.String(); !strings.Contains(text, "no space") || !strings.Contains(text, d.Dir) {
			t.Errorf("no clear error on a full disk:\n%s", text)
		}
	}
	c.Kill()
	d.Free()
	c = rig.StartCollector(t, s)
	st = startStream(t, c, "after", 16<<10)
	st.more(50)
	names = append(names, st.end()...)
	rig.WaitLines(t, out, len(names))
	c.Stop()
	rig.WantNames(t, rig.ReadLines(t, out), names...)
}

// TestFullOutputDisk fills the disk of the output file: events are acked, stay in the journal, and
// are written when there is space, each once and none torn.
func TestFullOutputDisk(t *testing.T) {
	t.Parallel()
	for _, killed := range []bool{false, true} {
		t.Run(fmt.Sprintf("killed=%t", killed), func(t *testing.T) {
			d := rig.NewDisk(t, "1m")
			s, _ := rig.NewSetup(t)
			s.To = []string{"file://" + d.Dir + "/out/{tag}.jsonl"}
			c := rig.StartCollector(t, s)
			st := startStream(t, c, "full", 10_000)
			c.Says("level=ERROR", "no space", d.Dir)
			st.more(50)
			names := st.end()
			if killed {
				c.Kill()
				c = rig.StartCollector(t, s)
				c.Says("level=ERROR", "no space", d.Dir)
			}
			d.Remount("size=256m")
			rig.WaitLines(t, filepath.Join(d.Dir, "out"), len(names))
			c.Stop()
			rig.WantNames(t, rig.ReadLines(t, filepath.Join(d.Dir, "out")), names...)
		})
	}
}

// TestReadOnlyOutput has the output's file system turn read-only and back.
func TestReadOnlyOutput(t *testing.T) {
	t.Parallel()
	d := rig.NewDisk(t, "64m")
	s, _ := rig.NewSetup(t)
	out := filepath.Join(d.Dir, "out")
	s.To = []string{"file://" + out + "/{tag}.jsonl"}
	c := rig.StartCollector(t, s)
	rig.Must(t, os.Mkdir(out, 0o700))
	d.Remount("ro")
	st := startStream(t, c, "ro", 1000)
	c.Says("level=ERROR", "read-only", d.Dir)
	st.more(10)
	d.Remount("rw")
	st.more(10)
	names := st.end()
	rig.WaitLines(t, out, len(names))
	c.Stop()
	rig.WantNames(t, rig.ReadLines(t, out), names...)
	d.Remount("ro")
	c = rig.Launch(t, s)
	if code := c.Wait(); code != 1 {
		t.Errorf("a start with an output that cannot be: exit code %d, want 1", code)
	}
	if text := c.Log.String(); !strings.Contains(text, s.To[0]) || !strings.Contains(text, "read-only") {
		t.Errorf("no clear error: %s", text)
	}
}

// TestReadOnlyData wants a start that fails with a sentence that names the directory.
func TestReadOnlyData(t *testing.T) {
	t.Parallel()
	d := rig.NewDisk(t, "64m")
	s, _ := rig.NewSetup(t)
	s.Data = filepath.Join(d.Dir, "data")
	d.Remount("ro")
	c := rig.Launch(t, s)
	if code := c.Wait(); code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	if text := c.Log.String(); !strings.Contains(text, s.Data) || !strings.Contains(text, "read-only") {
		t.Errorf("no clear error: %s", text)
	}
	d.Remount("rw")
	rig.StartCollector(t, s).Stop()
}

// TestDataInUse starts a second collector on the data directory of a living one; of a dead one it
// may be taken at once.
func TestDataInUse(t *testing.T) {
	t.Parallel()
	s, out := rig.NewSetup(t)
	c := rig.StartCollector(t, s)
	l := c.Lane()
	second := rig.Launch(t, s)
	if code := second.Wait(); code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	if text := second.Log.String(); !strings.Contains(text, s.Data) ||
		!strings.Contains(text, fmt.Sprint(c.Cmd.Process.Pid)) {
		t.Errorf("the error names not both directory and process %d: %s", c.Cmd.Process.Pid, text)
	}
	id := rig.NewID()
	l.Send(rig.Packed("a", id, rig.Named("undisturbed").Append(nil)), id)
	c.Kill()
	c = rig.StartCollector(t, s)
	id = rig.NewID()
	c.Lane().Send(rig.Packed("a", id, rig.Named("after").Append(nil)), id)
	rig.WaitLines(t, out, 2)
	c.Stop()
	rig.WantNames(t, rig.ReadLines(t, out), "undisturbed", "after")
}

// space is the free space of a file system in bytes.
func space(t testing.TB, dir string) int64 {
	t.Helper()
	out, err := exec.Command("df", "--output=avail", "-B1", dir).Output()
	rig.Must(t, err)
	var n int64
	_, err = fmt.Sscan(strings.TrimSpace(string(out[bytes.IndexByte(out, '\n')+1:])), &n)
	rig.Must(t, err)
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
