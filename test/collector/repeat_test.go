// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"bytes"
	"io"
	"os/exec"
	"strings"
	"testing"

	"github.com/spillwaylog/spillway/test/internal/rig"
)

// A chunk is a repeat when id, tag and entries agree and it comes on another connection from the
// same address. Everything else is new: the ids of some clients are hashes of the content.

func TestRepeats(t *testing.T) {
	t.Parallel()
	s, out := rig.NewSetup(t)
	c := rig.StartCollector(t, s)
	var want []string
	stored := func(names ...string) { want = append(want, names...) }
	chunk := func(tag, id string, names ...string) []byte {
		var b []byte
		for _, n := range names {
			b = rig.Named(n).Append(b)
		}
		return rig.Packed(tag, id, b)
	}

	// The same chunk twice on one connection.
	one := c.Lane()
	id := rig.NewID()
	one.Send(chunk("a", id, "same connection"), id)
	one.Send(chunk("a", id, "same connection"), id)
	stored("same connection", "same connection")

	// The same two in one write.
	id = rig.NewID()
	one.Write(bytes.Repeat(chunk("a", id, "same write"), 2))
	one.WantAck(id)
	one.WantAck(id)
	stored("same write", "same write")

	// The same chunk from two addresses.
	id = rig.NewID()
	c.LaneFrom("127.0.0.1").Send(chunk("a", id, "two addresses"), id)
	c.LaneFrom("127.0.0.2").Send(chunk("a", id, "two addresses"), id)
	stored("two addresses", "two addresses")

	// The same entries and id under two tags, on two connections.
	id = rig.NewID()
	c.Lane().Send(chunk("a", id, "two tags"), id)
	c.Lane().Send(chunk("b", id, "two tags"), id)
	stored("two tags", "two tags")

	// The same id with other entries.
	id = rig.NewID()
	c.Lane().Send(chunk("a", id, "other entries 1"), id)
	c.Lane().Send(chunk("a", id, "other entries 2"), id)
	stored("other entries 1", "other entries 2")

	// No id at all: nothing to recognise it by. A chunk behind it on the same connection is acked
	// when both are stored.
	for range 2 {
		l := c.Lane()
		l.Write(chunk("a", "", "no id"))
		id = rig.NewID()
		l.Send(chunk("a", id, "no id"), id)
		stored("no id", "no id")
	}

	// A resend on a new connection from the same address, in other modes of the protocol too; the
	// first connection stays open or not.
	id = rig.NewID()
	first := c.Lane()
	first.Send(chunk("a", id, "resent"), id)
	c.Lane().Send(chunk("a", id, "resent"), id)
	first.Conn.Close()
	c.Lane().Send(chunk("a", id, "resent"), id)
	c.Lane().Send(rig.ForwardMode("a", id, rig.Named("resent")), id)
	stored("resent")

	// A chunk whose ack nobody read.
	id = rig.NewID()
	unread := c.Lane()
	unread.Write(chunk("a", id, "ack unread"))
	unread.Conn.Close()
	c.Lane().Send(chunk("a", id, "ack unread"), id)
	stored("ack unread")

	// A resend after a restart, polite and not; from another address it is new.
	for _, end := range []func(*rig.Collector){(*rig.Collector).Stop, (*rig.Collector).Kill} {
		id = rig.NewID()
		name := "restarted " + id
		c.Lane().Send(chunk("a", id, name), id)
		stored(name)
		end(c)
		c = rig.StartCollector(t, s)
		c.Lane().Send(chunk("a", id, name), id)
		c.Lane().Send(chunk("a", id, name), id)
		c.LaneFrom("127.0.0.3").Send(chunk("a", id, name), id)
		stored(name)
		c.Stop()
		c = rig.StartCollector(t, s)
	}

	rig.WaitLines(t, out, len(want))
	c.Stop()
	rig.WantNames(t, rig.ReadLines(t, out), want...)
}

// TestRepeatOfUnacked has the collector die between storing a chunk and its ack: acks wait for an
// output that is stuck.
func TestRepeatOfUnacked(t *testing.T) {
	t.Parallel()
	s, out := rig.NewSetup(t)
	s.To = append(s.To, "stdout:")
	s.Args = []string{"--ack", "delivered"}
	r, w := io.Pipe() // nobody reads: the output stops when the pipe to the process is full
	s.Stdout = w
	stuck := rig.StartCollector(t, s)

	filler := strings.Repeat("f", 300<<10) // more than a pipe holds
	big := rig.Named("filler")
	big.Pad = filler
	l := stuck.Lane()
	l.Write(rig.Packed("a", "", big.Append(nil)))
	id := rig.NewID()
	message := rig.Packed("a", id, rig.Named("stored, not acked").Append(nil))
	l.Write(message)
	rig.Eventually(t, "the journal has the chunk", func() bool {
		text, err := exec.Command(rig.Lean.Build(t), "journal", "cat", s.Data).Output()
		if err != nil {
			t.Fatalf("journal cat: %v", err)
		}
		return strings.Contains(string(text), "stored, not acked")
	})
	stuck.Cmd.Process.Kill() //nolint:errcheck // seen by Wait
	r.Close()
	w.Close()
	<-stuck.Done

	l.Deadline(rig.Patience)
	if id, err := rig.ReadAck(l.Acks); err == nil {
		t.Fatalf("acked %q although an output was stuck", id)
	}
	s.Stdout = nil
	c := rig.StartCollector(t, s)
	c.Lane().Send(message, id)
	c.Lane().Send(message, id)
	rig.WaitLines(t, out, 2)
	c.Stop()
	rig.WantNames(t, rig.ReadLines(t, out), "filler", "stored, not acked")
}
