// SPDX-License-Identifier: Apache-2.0

package test

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"net"
	"testing"
	"time"
)

// fluentdID is a chunk id as Fluentd makes it: base64 of 16 bytes that are unique, with a newline.
func fluentdID() string {
	var b [16]byte
	rand.Read(b[:])
	return base64.StdEncoding.EncodeToString(b[:]) + "\n"
}

// fluentdChunk is a message as Fluentd's forward output writes it: the entries are a str32,
// whatever is in them; the option has size, compressed and chunk.
func fluentdChunk(tag, id string, names ...string) []byte {
	var entries []byte
	for _, n := range names {
		e := named(n)
		entries = append(entries, 0x92, 0xd7, 0x00)
		entries = binary.BigEndian.AppendUint32(entries, e.sec)
		entries = binary.BigEndian.AppendUint32(entries, e.nsec)
		entries = appendStr(appendStr(append(entries, 0x81), "name"), n)
	}
	m := appendStr([]byte{0x93}, tag)
	m = binary.BigEndian.AppendUint32(append(m, 0xdb), uint32(len(entries)))
	m = append(m, entries...)
	m = append(m, 0x83)
	m = append(appendStr(m, "size"), byte(len(names)))
	m = appendStr(appendStr(m, "compressed"), "text")
	return appendStr(appendStr(m, "chunk"), id)
}

// TestFluentdRepeats: ids with a newline, a connection for each chunk (keepalive is off by
// default), resends on fresh ones, a restart in between.
func TestFluentdRepeats(t *testing.T) {
	s, out := newSetup(t)
	c := startCollector(t, s)
	var want []string
	once := func(m []byte, id string) { // as without keepalive: one chunk, its ack, the end
		l := c.lane()
		l.send(m, id)
		l.conn.Close()
	}
	id := fluentdID()
	m := fluentdChunk("fd", id, "one", "two")
	once(m, id)
	once(m, id)
	want = append(want, "one", "two")
	// The same without the newline is another id.
	bare := id[:len(id)-1]
	once(fluentdChunk("fd", bare, "one", "two"), bare)
	want = append(want, "one", "two")
	// Equal content in another chunk.
	other := fluentdID()
	once(fluentdChunk("fd", other, "one", "two"), other)
	want = append(want, "one", "two")
	// A resend that overtakes the first try: the old connection is served at the same time, and
	// delivers late.
	slow, fast := c.lane(), c.lane()
	late := fluentdID()
	m = fluentdChunk("fd", late, "overtaken")
	slow.write(m[:len(m)/2])
	fast.send(m, late)
	slow.write(m[len(m)/2:])
	slow.wantAck(late)
	want = append(want, "overtaken")

	c.kill()
	c = startCollector(t, s)
	once(m, late)
	waitLines(t, out, len(want))
	c.stop()
	if a := c.lastAccount(); a["repeated_chunks"] != 1 {
		t.Errorf("%d repeats after the restart, want 1", a["repeated_chunks"])
	}
	wantNames(t, readLines(t, out), want...)
}

// TestFluentdHeartbeats: with heartbeat_type transport Fluentd opens a connection each second, goes
// through the whole handshake, sends nothing and closes; with udp it sends a zero. Nothing of it is
// an event, or trouble.
func TestFluentdHeartbeats(t *testing.T) {
	t.Setenv("SPILLWAY_TEST_KEY", "secret")
	s, out := newSetup(t)
	s.listen = []string{"forward://127.0.0.1:0?shared_key_env=SPILLWAY_TEST_KEY"}
	c := startCollector(t, s)
	var want []string
	for range 20 {
		beat := c.dialFrom("127.0.0.1")
		greet(t, beat, "fluentd.example", "secret")
		beat.Close()

		udp, err := net.Dial("udp", c.addr)
		must(t, err)
		_, err = udp.Write([]byte{0})
		must(t, err)
		must(t, udp.SetReadDeadline(time.Now().Add(patience)))
		answer := make([]byte, 16)
		n, err := udp.Read(answer)
		if err != nil || n != 1 || answer[0] != 0 {
			t.Fatalf("the answer to a heartbeat is % x, %v", answer[:n], err)
		}
		udp.Close()

		l := c.lane()
		l.acks = greet(t, l.conn, "fluentd.example", "secret")
		id := fluentdID()
		l.send(fluentdChunk("fd", id, "between "+id), id)
		want = append(want, "between "+id)
		l.conn.Close()
	}
	eventually(t, "the connections are gone", func() bool { return c.account()["connections"] == 0 })
	if line := c.log.find("bad input"); line != "" {
		t.Errorf("heartbeats are taken for trouble: %s", line)
	}
	waitLines(t, out, len(want))
	c.stop()
	if a := c.lastAccount(); a["in"] != int64(len(want)) || a["chunks"] != int64(len(want)) ||
		a["refused_messages"] != 0 {
		t.Errorf("account: %v", a)
	}
	wantNames(t, readLines(t, out), want...)
}
