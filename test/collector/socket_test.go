// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"bufio"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/test/internal/rig"
)

// The sockets themselves: unix sockets that are stale or live, JSON, heartbeats.

// unixLane connects to a unix socket.
func unixLane(t *testing.T, path string) *rig.Lane {
	t.Helper()
	conn, err := net.Dial("unix", path)
	rig.Must(t, err)
	t.Cleanup(func() { conn.Close() })
	return &rig.Lane{T: t, Conn: conn, Acks: bufio.NewReader(conn)}
}

// TestUnixSocket wants the socket of a dead collector replaced and that of a living process left
// alone; a resend over unix sockets is a resend, the peer being the same.
func TestUnixSocket(t *testing.T) {
	t.Parallel()
	path := rig.SocketPath(t)
	s, out := rig.NewSetup(t)
	s.Listen = []string{"forward+unix://" + path}
	c := rig.StartCollector(t, s)
	id := rig.NewID()
	message := rig.Packed("a", id, rig.Named("over unix").Append(nil))
	unixLane(t, path).Send(message, id)

	other, _ := rig.NewSetup(t)
	other.Listen = s.Listen
	second := rig.Launch(t, other)
	if code := second.Wait(); code != 1 {
		t.Errorf("a second collector on a live socket: exit code %d, want 1", code)
	}
	if text := second.Log.String(); !strings.Contains(text, path) {
		t.Errorf("the error does not name the socket: %s", text)
	}
	unixLane(t, path).Send(message, id)

	c.Kill()
	if _, err := os.Lstat(path); err != nil {
		t.Fatalf("a killed process leaves its socket: %v", err)
	}
	c = rig.StartCollector(t, s)
	unixLane(t, path).Send(message, id)
	rig.WaitLines(t, out, 1)
	c.Stop()
	rig.WantNames(t, rig.ReadLines(t, out), "over unix")

	// What is no socket is not replaced.
	rig.Must(t, os.RemoveAll(path))
	rig.Must(t, os.WriteFile(path, []byte("precious"), 0o600))
	if code := rig.Launch(t, s).Wait(); code != 1 {
		t.Errorf("a file in place of the socket: exit code %d, want 1", code)
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != "precious" {
		t.Errorf("the file is gone: %q, %v", b, err)
	}
}

// TestJSONInput sends JSON in place of MessagePack (docs/forward.md rule 43).
func TestJSONInput(t *testing.T) {
	t.Parallel()
	s, out := rig.NewSetup(t)
	c := rig.StartCollector(t, s)
	l := c.Lane()
	l.Write([]byte(`["json", 1441588984, {"name": "one"}, {"chunk": "first"}]` + "\n" +
		`["json", [[1441588985, {"name": "two"}], [1441588986, {"name": "three"}]], {"chunk": "second"}]`))
	for _, id := range []string{"first", "second"} {
		l.Deadline(rig.Patience)
		text, err := l.Acks.ReadString('}')
		if err != nil || !strings.Contains(text, `"ack"`) || !strings.Contains(text, `"`+id+`"`) {
			t.Errorf("ack of %s: %q, %v", id, text, err)
		}
	}
	rig.WaitLines(t, out, 3)
	c.Stop()
	lines := rig.ReadLines(t, out)
	rig.WantNames(t, lines, "one", "two", "three")
	for i, l := range lines {
		if want := time.Unix(1441588984+int64(i), 0); !l.Time.Equal(want) || l.Tag != "json" {
			t.Errorf("%+v, want time %v", l, want)
		}
	}
}

// TestHeartbeat wants one byte back on the UDP port of the same number (rule 41).
func TestHeartbeat(t *testing.T) {
	t.Parallel()
	s, _ := rig.NewSetup(t)
	c := rig.StartCollector(t, s)
	conn, err := net.Dial("udp", c.Addr)
	rig.Must(t, err)
	defer conn.Close()
	rig.Must(t, conn.SetReadDeadline(time.Now().Add(rig.Patience)))
	_, err = conn.Write([]byte{0})
	rig.Must(t, err)
	buf := make([]byte, 100)
	n, err := conn.Read(buf)
	if err != nil || n != 1 || buf[0] != 0 {
		t.Errorf("% x, %v; want one byte 00", buf[:n], err)
	}
	c.Stop()
}
