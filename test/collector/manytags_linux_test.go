// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/internal/needs"
	"github.com/spillwaylog/spillway/test/internal/rig"
)

// TestManyTags writes far more files than may be open, through kills: the number of open files is
// bounded, and each event is in its file once.
func TestManyTags(t *testing.T) {
	t.Parallel()
	const tags, rounds, bar = 3000, 4, 1000
	s, out := rig.NewSetup(t)
	var want []string
	most := 0
	for round := range rounds {
		c := rig.StartCollector(t, s)
		l := c.Lane()
		for tag := range tags {
			name := fmt.Sprintf("t%d-%d", tag, round)
			id := rig.NewID()
			l.Write(rig.Packed(fmt.Sprint("tag.", tag), id, rig.Named(name).Append(nil)))
			want = append(want, name)
			if tag%200 == 199 {
				for range 200 { // ids come back in their order; here it only matters that all are acked
					l.Deadline(rig.Patience)
					_, err := rig.ReadAck(l.Acks)
					rig.Must(t, err)
				}
				open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", c.Cmd.Process.Pid))
				rig.Must(t, err)
				most = max(most, len(open))
			}
		}
		if round == rounds-1 {
			rig.WaitLines(t, out, len(want))
			c.Stop()
		} else {
			c.Kill()
		}
	}
	rig.Figure(t, "%d tags: at most %d files open", tags, most)
	if most > bar {
		t.Errorf("%d files open, want at most %d", most, bar)
	}
	lines := rig.ReadLines(t, out)
	rig.WantNames(t, lines, want...)
	rig.WantOrder(t, lines)
}

// TestMillionTags sends events each of which has a tag of its own, through a kill, to an output
// that may make few files in a minute: each event is in its own file or in that for the rest, once,
// and neither the process nor its state grows with the tags.
func TestMillionTags(t *testing.T) {
	tags := needs.Rounds(t, "SPILLWAY_TAGS", 20_000, 20_000)
	const bound = 400
	s, out := rig.NewSetup(t)
	s.Bin = rig.Lean
	s.To = []string{fmt.Sprintf("file://%s/{tag}.jsonl?new_files=%d", out, bound)}
	c := rig.StartCollector(t, s)
	began := time.Now()
	l := c.Lane()
	var want []string
	var b []byte
	most, state := int64(0), int64(0)
	look := func() {
		most = max(most, peak(t, c))
		cursors, err := filepath.Glob(filepath.Join(s.Data, "journal", "cursor-*"))
		rig.Must(t, err)
		for _, name := range cursors {
			if info, err := os.Stat(name); err == nil { // else it was replaced
				state = max(state, info.Size())
			}
		}
	}
	for i := range tags {
		name := fmt.Sprint("m", i)
		want = append(want, name)
		b = append(rig.AppendStr(append(b, 0x93), fmt.Sprintf("service.%d.tag", i)), rig.Named(name).Append(nil)[1:]...)
		if i%1000 != 999 && i != tags-1 {
			continue
		}
		l.Write(b)
		b = b[:0]
		if i%10_000 == 9999 {
			id := rig.NewID()
			last := fmt.Sprint("acked", i)
			want = append(want, last)
			l.Send(rig.Packed("acked", id, rig.Named(last).Append(nil)), id)
			look()
		}
		if i == tags/2/10_000*10_000-1 {
			c.Kill()
			c = rig.StartCollector(t, s)
			l = c.Lane()
		}
	}
	rig.WaitLines(t, out, len(want))
	look()
	rig.Eventually(t, "all is delivered", func() bool { return delivered(c) })
	took := time.Since(began)
	c.Stop()
	rig.WantNames(t, rig.ReadLines(t, out), want...)
	files := countFiles(t, out)
	minutes := int(took/time.Minute) + 2
	rig.Figure(t, "%d tags in %v: %d files, at most %.1f MB resident, a cursor and its state at most %d bytes",
		tags, took.Round(time.Millisecond), files, float64(most)/1e6, state)
	if files < bound || files > minutes*bound+2 {
		t.Errorf("%d files in %v, with at most %d new ones a minute", files, took, bound)
	}
	if most > hostileBar || state == 0 || state > 4<<20 {
		t.Errorf("%d bytes resident, %d bytes of state", most, state)
	}
}
