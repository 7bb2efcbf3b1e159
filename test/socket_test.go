// SPDX-License-Identifier: Apache-2.0

package test

import (
	"bufio"
	"net"
	"os"
	"strings"
	"testing"
	"time"
)

// The sockets themselves: unix sockets that are stale or live, JSON, heartbeats.

// unixLane connects to a unix socket.
func unixLane(t *testing.T, path string) *lane {
	t.Helper()
	conn, err := net.Dial("unix", path)
	must(t, err)
	t.Cleanup(func() { conn.Close() })
	return &lane{t: t, conn: conn, acks: bufio.NewReader(conn)}
}

// TestUnixSocket wants the socket of a dead collector replaced and that of a living process left
// alone; a resend over unix sockets is a resend, the peer being the same.
func TestUnixSocket(t *testing.T) {
	t.Parallel()
	path := socketPath(t)
	s, out := newSetup(t)
	s.listen = []string{"forward+unix://" + path}
	c := startCollector(t, s)
	id := newID()
	message := packed("a", id, named("over unix").append(nil))
	unixLane(t, path).send(message, id)

	other, _ := newSetup(t)
	other.listen = s.listen
	second := launch(t, other)
	if code := second.wait(); code != 1 {
		t.Errorf("a second collector on a live socket: exit code %d, want 1", code)
	}
	if text := second.log.String(); !strings.Contains(text, path) {
		t.Errorf("the error does not name the socket: %s", text)
	}
	unixLane(t, path).send(message, id)

	c.kill()
	if _, err := os.Lstat(path); err != nil {
		t.Fatalf("a killed process leaves its socket: %v", err)
	}
	c = startCollector(t, s)
	unixLane(t, path).send(message, id)
	waitLines(t, out, 1)
	c.stop()
	wantNames(t, readLines(t, out), "over unix")

	// What is no socket is not replaced.
	must(t, os.RemoveAll(path))
	must(t, os.WriteFile(path, []byte("precious"), 0o600))
	if code := launch(t, s).wait(); code != 1 {
		t.Errorf("a file in place of the socket: exit code %d, want 1", code)
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != "precious" {
		t.Errorf("the file is gone: %q, %v", b, err)
	}
}

// TestJSONInput sends JSON in place of MessagePack (docs/forward.md rule 43).
func TestJSONInput(t *testing.T) {
	t.Parallel()
	s, out := newSetup(t)
	c := startCollector(t, s)
	l := c.lane()
	l.write([]byte(`["json", 1441588984, {"name": "one"}, {"chunk": "first"}]` + "\n" +
		`["json", [[1441588985, {"name": "two"}], [1441588986, {"name": "three"}]], {"chunk": "second"}]`))
	for _, id := range []string{"first", "second"} {
		l.deadline(patience)
		text, err := l.acks.ReadString('}')
		if err != nil || !strings.Contains(text, `"ack"`) || !strings.Contains(text, `"`+id+`"`) {
			t.Errorf("ack of %s: %q, %v", id, text, err)
		}
	}
	waitLines(t, out, 3)
	c.stop()
	lines := readLines(t, out)
	wantNames(t, lines, "one", "two", "three")
	for i, l := range lines {
		if want := time.Unix(1441588984+int64(i), 0); !l.time.Equal(want) || l.tag != "json" {
			t.Errorf("%+v, want time %v", l, want)
		}
	}
}

// TestHeartbeat wants one byte back on the UDP port of the same number (rule 41).
func TestHeartbeat(t *testing.T) {
	t.Parallel()
	s, _ := newSetup(t)
	c := startCollector(t, s)
	conn, err := net.Dial("udp", c.addr)
	must(t, err)
	defer conn.Close()
	must(t, conn.SetReadDeadline(time.Now().Add(patience)))
	_, err = conn.Write([]byte{0})
	must(t, err)
	buf := make([]byte, 100)
	n, err := conn.Read(buf)
	if err != nil || n != 1 || buf[0] != 0 {
		t.Errorf("% x, %v; want one byte 00", buf[:n], err)
	}
	c.stop()
}
