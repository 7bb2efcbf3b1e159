// SPDX-License-Identifier: Apache-2.0

package test

import (
	"bufio"
	"crypto/tls"
	"regexp"
	"testing"

	"github.com/spillwaylog/spillway/internal/testcert"
)

var listeningURL = regexp.MustCompile(`msg=listening code=input-listening url="?forward(?:\+tls)?://([^ "?]+)`)

// addrs is where the TCP listeners listen, in order.
func addrs(c *collector) (addrs []string) {
	for _, m := range listeningURL.FindAllStringSubmatch(c.log.String(), -1) {
		addrs = append(addrs, m[1])
	}
	return addrs
}

// TestRepeatsAcrossListeners: a chunk that comes again by another listener is a repeat if its peer
// is the same, or its id one of Spillway's own. The account of each listener tells what came by it.
func TestRepeatsAcrossListeners(t *testing.T) {
	ca := testcert.New(t)
	socket := socketPath(t)
	s, out := newSetup(t)
	s.listen = []string{
		"forward://127.0.0.1:0",
		"forward+unix://" + socket,
		"forward+tls://127.0.0.1:0?cert=" + ca.Server.Cert + "&key=" + ca.Server.Key,
	}
	c := startCollector(t, s)
	over := func() (lanes map[string]*lane) {
		conn, err := tls.Dial("tcp", addrs(c)[1], &tls.Config{RootCAs: ca.Pool, ServerName: "localhost"})
		must(t, err)
		t.Cleanup(func() { conn.Close() })
		return map[string]*lane{
			"tcp": c.lane(), "unix": unixLane(t, socket),
			"tls": {t: t, conn: conn, acks: bufio.NewReader(conn)},
		}
	}
	var want []string

	// A foreign id: plain and encrypted connections of one host have one address, a unix socket has
	// another.
	id := newID()
	m := packed("a", id, named("foreign").append(nil))
	for range 2 {
		lanes := over()
		for _, by := range []string{"tcp", "tls", "unix"} {
			lanes[by].send(m, id)
		}
	}
	want = append(want, "foreign", "foreign") // by tcp and by unix

	// One of Spillway's own: the same wherever it comes from.
	id = newID()
	own := appendBin(appendStr([]byte{0x93}, "a"), named("own").append(nil))
	own = appendStr(appendStr(append(own, 0x82), "chunk"), id)
	own = append(appendStr(own, "spillway"), 1)
	lanes := over()
	for _, by := range []string{"unix", "tls", "tcp"} {
		lanes[by].send(own, id)
	}
	want = append(want, "own")

	a := c.account()
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
	c.kill()
	c = startCollector(t, s)
	lanes = over()
	for _, by := range []string{"tls", "tcp", "unix"} {
		lanes[by].send(own, id)
	}
	waitLines(t, out, len(want))
	c.stop()
	wantNames(t, readLines(t, out), want...)
}

// TestRepeatsWithSource: what the collector adds to records, and changes in tags, has no part in
// what a repeat is.
func TestRepeatsWithSource(t *testing.T) {
	t.Setenv("SPILLWAY_TEST_KEY", "secret")
	s, out := newSetup(t)
	s.listen = []string{"forward://127.0.0.1:0?tag_prefix=site&address_key=from&host_key=by&shared_key_env=SPILLWAY_TEST_KEY"}
	c := startCollector(t, s)
	id := newID()
	m := packed("a", id, named("sourced").append(nil))
	for _, host := range []string{"one.example", "one.example", "renamed.example"} {
		l := c.lane()
		l.acks = greet(t, l.conn, host, "secret")
		l.send(m, id)
	}
	waitLines(t, out, 1)
	c.stop()
	lines := readLines(t, out)
	wantNames(t, lines, "sourced")
	if l := lines[0]; l.tag != "site.a" || l.record["from"] != "127.0.0.1" || l.record["by"] != "one.example" {
		t.Errorf("%s %v", l.tag, l.record)
	}
}
