// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"bufio"
	"crypto/tls"
	"regexp"
	"testing"

	"github.com/spillwaylog/spillway/internal/testcert"
	"github.com/spillwaylog/spillway/test/internal/rig"
)

var listeningURL = regexp.MustCompile(`msg=listening code=input-listening url="?forward(?:\+tls)?://([^ "?]+)`)

// addrs is where the TCP listeners listen, in order.
func addrs(c *rig.Collector) (addrs []string) {
	for _, m := range listeningURL.FindAllStringSubmatch(c.Log.String(), -1) {
		addrs = append(addrs, m[1])
	}
	return addrs
}

// TestRepeatsAcrossListeners: a chunk that comes again by another listener is a repeat if its peer
// is the same, or its id one of Spillway's own. The account of each listener tells what came by it.
func TestRepeatsAcrossListeners(t *testing.T) {
	ca := testcert.New(t)
	socket := rig.SocketPath(t)
	s, out := rig.NewSetup(t)
	s.Listen = []string{
		"forward://127.0.0.1:0",
		"forward+unix://" + socket,
		"forward+tls://127.0.0.1:0?cert=" + ca.Server.Cert + "&key=" + ca.Server.Key,
	}
	c := rig.StartCollector(t, s)
	over := func() (lanes map[string]*rig.Lane) {
		conn, err := tls.Dial("tcp", addrs(c)[1], &tls.Config{RootCAs: ca.Pool, ServerName: "localhost"})
		rig.Must(t, err)
		t.Cleanup(func() { conn.Close() })
		return map[string]*rig.Lane{
			"tcp": c.Lane(), "unix": unixLane(t, socket),
			"tls": {T: t, Conn: conn, Acks: bufio.NewReader(conn)},
		}
	}
	var want []string

	// A foreign id: plain and encrypted connections of one host have one address, a unix socket has
	// another.
	id := rig.NewID()
	m := rig.Packed("a", id, rig.Named("foreign").Append(nil))
	for range 2 {
		lanes := over()
		for _, by := range []string{"tcp", "tls", "unix"} {
			lanes[by].Send(m, id)
		}
	}
	want = append(want, "foreign", "foreign") // by tcp and by unix

	// One of Spillway's own: the same wherever it comes from.
	id = rig.NewID()
	own := rig.AppendBin(rig.AppendStr([]byte{0x93}, "a"), rig.Named("own").Append(nil))
	own = rig.AppendStr(rig.AppendStr(append(own, 0x82), "chunk"), id)
	own = append(rig.AppendStr(own, "spillway"), 1)
	lanes := over()
	for _, by := range []string{"unix", "tls", "tcp"} {
		lanes[by].Send(own, id)
	}
	want = append(want, "own")

	a := c.Account()
	for name, n := range map[string]int64{
		"in": 9, "stored": 3, "repeated": 6,
		"input0.in": 3, "input0.stored": 1, "input0.repeated": 2,
		"input1.in": 3, "input1.stored": 2, "input1.repeated": 1,
		"input2.in": 3, "input2.stored": 0, "input2.repeated": 3,
	} {
		if a[name] != n {
			t.Errorf("%s is %d, want %d", name, a[name], n)
		}
	}
	c.Kill()
	c = rig.StartCollector(t, s)
	lanes = over()
	for _, by := range []string{"tls", "tcp", "unix"} {
		lanes[by].Send(own, id)
	}
	rig.WaitLines(t, out, len(want))
	c.Stop()
	rig.WantNames(t, rig.ReadLines(t, out), want...)
}

// TestRepeatsWithSource: what the collector adds to records, and changes in tags, has no part in
// what a repeat is.
func TestRepeatsWithSource(t *testing.T) {
	t.Setenv("SPILLWAY_TEST_KEY", "secret")
	s, out := rig.NewSetup(t)
	s.Listen = []string{"forward://127.0.0.1:0?tag_prefix=site&address_key=from&host_key=by&shared_key_env=SPILLWAY_TEST_KEY"}
	c := rig.StartCollector(t, s)
	id := rig.NewID()
	m := rig.Packed("a", id, rig.Named("sourced").Append(nil))
	for _, host := range []string{"one.example", "one.example", "renamed.example"} {
		l := c.Lane()
		l.Acks = greet(t, l.Conn, host, "secret")
		l.Send(m, id)
	}
	rig.WaitLines(t, out, 1)
	c.Stop()
	lines := rig.ReadLines(t, out)
	rig.WantNames(t, lines, "sourced")
	if l := lines[0]; l.Tag != "site.a" || l.Record["from"] != "127.0.0.1" || l.Record["by"] != "one.example" {
		t.Errorf("%s %v", l.Tag, l.Record)
	}
}
