// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"net"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/test/internal/rig"
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
		e := rig.Named(n)
		entries = append(entries, 0x92, 0xd7, 0x00)
		entries = binary.BigEndian.AppendUint32(entries, e.Sec)
		entries = binary.BigEndian.AppendUint32(entries, e.Nsec)
		entries = rig.AppendStr(rig.AppendStr(append(entries, 0x81), "name"), n)
	}
	m := rig.AppendStr([]byte{0x93}, tag)
	m = binary.BigEndian.AppendUint32(append(m, 0xdb), uint32(len(entries)))
	m = append(m, entries...)
	m = append(m, 0x83)
	m = append(rig.AppendStr(m, "size"), byte(len(names)))
	m = rig.AppendStr(rig.AppendStr(m, "compressed"), "text")
	return rig.AppendStr(rig.AppendStr(m, "chunk"), id)
}

// TestFluentdRepeats: ids with a newline, a connection for each chunk (keepalive is off by
// default), resends on fresh ones, a restart in between.
func TestFluentdRepeats(t *testing.T) {
	s, out := rig.NewSetup(t)
	c := rig.StartCollector(t, s)
	var want []string
	once := func(m []byte, id string) { // as without keepalive: one chunk, its ack, the end
		l := c.Lane()
		l.Send(m, id)
		l.Conn.Close()
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
	slow, fast := c.Lane(), c.Lane()
	late := fluentdID()
	m = fluentdChunk("fd", late, "overtaken")
	slow.Write(m[:len(m)/2])
	fast.Send(m, late)
	slow.Write(m[len(m)/2:])
	slow.WantAck(late)
	want = append(want, "overtaken")

	c.Kill()
	c = rig.StartCollector(t, s)
	once(m, late)
	rig.WaitLines(t, out, len(want))
	c.Stop()
	if a := c.LastAccount(); a["repeated_chunks"] != 1 {
		t.Errorf("%d repeats after the restart, want 1", a["repeated_chunks"])
	}
	rig.WantNames(t, rig.ReadLines(t, out), want...)
}

// TestFluentdHeartbeats: with heartbeat_type transport Fluentd opens a connection each second, goes
// through the whole handshake, sends nothing and closes; with udp it sends a zero. Nothing of it is
// an event, or an error.
func TestFluentdHeartbeats(t *testing.T) {
	t.Setenv("SPILLWAY_TEST_KEY", "secret")
	s, out := rig.NewSetup(t)
	s.Listen = []string{"forward://127.0.0.1:0?shared_key_env=SPILLWAY_TEST_KEY"}
	c := rig.StartCollector(t, s)
	var want []string
	for range 20 {
		beat := c.DialFrom("127.0.0.1")
		greet(t, beat, "fluentd.example", "secret")
		beat.Close()

		udp, err := net.Dial("udp", c.Addr)
		rig.Must(t, err)
		_, err = udp.Write([]byte{0})
		rig.Must(t, err)
		rig.Must(t, udp.SetReadDeadline(time.Now().Add(rig.Patience)))
		answer := make([]byte, 16)
		n, err := udp.Read(answer)
		if err != nil || n != 1 || answer[0] != 0 {
			t.Fatalf("the answer to a heartbeat is % x, %v", answer[:n], err)
		}
		udp.Close()

		l := c.Lane()
		l.Acks = greet(t, l.Conn, "fluentd.example", "secret")
		id := fluentdID()
		l.Send(fluentdChunk("fd", id, "between "+id), id)
		want = append(want, "between "+id)
		l.Conn.Close()
	}
	rig.Eventually(t, "the connections are gone", func() bool { return c.Account()["connections"] == 0 })
	if line := c.Log.Find("bad input"); line != "" {
		t.Errorf("heartbeats are taken for errors: %s", line)
	}
	rig.WaitLines(t, out, len(want))
	c.Stop()
	if a := c.LastAccount(); a["in"] != int64(len(want)) || a["chunks"] != int64(len(want)) ||
		a["refused_messages"] != 0 {
		t.Errorf("account: %v", a)
	}
	rig.WantNames(t, rig.ReadLines(t, out), want...)
}
