// SPDX-License-Identifier: Apache-2.0

package test

import (
	"bytes"
	"io"
	"os/exec"
	"strings"
	"testing"
)

// A chunk is a repeat when id, tag and entries agree and it comes on another connection from the
// same address. Everything else is new: the ids of some clients are hashes of the content.

func TestRepeats(t *testing.T) {
	t.Parallel()
	s, out := newSetup(t)
	c := startCollector(t, s)
	var want []string
	stored := func(names ...string) { want = append(want, names...) }
	chunk := func(tag, id string, names ...string) []byte {
		var b []byte
		for _, n := range names {
			b = named(n).append(b)
		}
		return packed(tag, id, b)
	}

	// The same chunk twice on one connection.
	one := c.lane()
	id := newID()
	one.send(chunk("a", id, "same connection"), id)
	one.send(chunk("a", id, "same connection"), id)
	stored("same connection", "same connection")

	// The same two in one write.
	id = newID()
	one.write(bytes.Repeat(chunk("a", id, "same write"), 2))
	one.wantAck(id)
	one.wantAck(id)
	stored("same write", "same write")

	// The same chunk from two addresses.
	id = newID()
	c.laneFrom("127.0.0.1").send(chunk("a", id, "two addresses"), id)
	c.laneFrom("127.0.0.2").send(chunk("a", id, "two addresses"), id)
	stored("two addresses", "two addresses")

	// The same entries and id under two tags, on two connections.
	id = newID()
	c.lane().send(chunk("a", id, "two tags"), id)
	c.lane().send(chunk("b", id, "two tags"), id)
	stored("two tags", "two tags")

	// The same id with other entries.
	id = newID()
	c.lane().send(chunk("a", id, "other entries 1"), id)
	c.lane().send(chunk("a", id, "other entries 2"), id)
	stored("other entries 1", "other entries 2")

	// No id at all: nothing to recognise it by. A chunk behind it on the same connection is acked
	// when both are stored.
	for range 2 {
		l := c.lane()
		l.write(chunk("a", "", "no id"))
		id = newID()
		l.send(chunk("a", id, "no id"), id)
		stored("no id", "no id")
	}

	// A resend on a new connection from the same address, in other modes of the protocol too; the
	// first connection stays open or not.
	id = newID()
	first := c.lane()
	first.send(chunk("a", id, "resent"), id)
	c.lane().send(chunk("a", id, "resent"), id)
	first.conn.Close()
	c.lane().send(chunk("a", id, "resent"), id)
	c.lane().send(forwardMode("a", id, named("resent")), id)
	stored("resent")

	// A chunk whose ack nobody read.
	id = newID()
	unread := c.lane()
	unread.write(chunk("a", id, "ack unread"))
	unread.conn.Close()
	c.lane().send(chunk("a", id, "ack unread"), id)
	stored("ack unread")

	// A resend after a restart, polite and not; from another address it is new.
	for _, end := range []func(*collector){(*collector).stop, (*collector).kill} {
		id = newID()
		name := "restarted " + id
		c.lane().send(chunk("a", id, name), id)
		stored(name)
		end(c)
		c = startCollector(t, s)
		c.lane().send(chunk("a", id, name), id)
		c.lane().send(chunk("a", id, name), id)
		c.laneFrom("127.0.0.3").send(chunk("a", id, name), id)
		stored(name)
		c.stop()
		c = startCollector(t, s)
	}

	waitLines(t, out, len(want))
	c.stop()
	wantNames(t, readLines(t, out), want...)
}

// TestRepeatOfUnacked has the collector die between storing a chunk and its ack: acks wait for an
// output that is stuck.
func TestRepeatOfUnacked(t *testing.T) {
	t.Parallel()
	s, out := newSetup(t)
	s.to = append(s.to, "stdout:")
	s.args = []string{"--ack", "delivered"}
	r, w := io.Pipe() // nobody reads: the output stops when the pipe to the process is full
	s.stdout = w
	stuck := startCollector(t, s)

	filler := strings.Repeat("f", 300<<10) // more than a pipe holds
	big := named("filler")
	big.pad = filler
	l := stuck.lane()
	l.write(packed("a", "", big.append(nil)))
	id := newID()
	message := packed("a", id, named("stored, not acked").append(nil))
	l.write(message)
	eventually(t, "the journal has the chunk", func() bool {
		text, err := exec.Command(lean.build(t), "journal", "cat", s.data).Output()
		if err != nil {
			t.Fatalf("journal cat: %v", err)
		}
		return strings.Contains(string(text), "stored, not acked")
	})
	stuck.cmd.Process.Kill() //nolint:errcheck // seen by Wait
	r.Close()
	w.Close()
	<-stuck.done

	l.deadline(patience)
	if id, err := readAck(l.acks); err == nil {
		t.Fatalf("acked %q although an output was stuck", id)
	}
	s.stdout = nil
	c := startCollector(t, s)
	c.lane().send(message, id)
	c.lane().send(message, id)
	waitLines(t, out, 2)
	c.stop()
	wantNames(t, readLines(t, out), "filler", "stored, not acked")
}
