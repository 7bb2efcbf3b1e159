// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"net"
	"strings"
	"testing"
	"time"
)

// aliens are first bytes of other protocols, and what they are called.
var aliens = map[string]string{
	"GET / HTTP/1.1\r\nHost: a\r\n\r\n":                                  "HTTP",
	"POST /x HTTP/1.0\r\n\r\n":                                           "HTTP",
	"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n":                                   "HTTP",
	"SSH-2.0-OpenSSH_9.6\r\n":                                            "SSH",
	"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03":                       "TLS: this listener takes plain Forward, one for TLS is forward+tls://",
	"<34>Oct 11 22:14:15 host su: failed\n":                              "syslog",
	"<34>1 2026-11-22T22:14:15Z host su - - - failed\n":                  "syslog",
	"47 <34>1 2026-11-22T22:14:15Z host su - failed\n":                   "syslog, with lengths",
	"metric.name 1 1441588984\n":                                         "text",
	"hi\r\n":                                                             "text",
	"2W\x00\x00\x00\x012C\x00\x00":                                       "Beats",
	"AMQP\x00\x00\x09\x01":                                               "AMQP",
	"\x10\x1a\x00\x04MQTT\x04\x02":                                       "MQTT",
	"\x00\x00\x00\x08\x04\xd2\x16\x2f":                                   "PostgreSQL",
	"PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n":                             "the header of the PROXY protocol",
	"\x00\x00\x00\x23\x00\x12\x00\x03\x00\x00\x00\x01\x00\x0aconsumer-1": "", // Kafka: too many values
}

// TestOtherProtocols: what speaks another protocol is told so once, however its bytes are cut, and
// its connection is closed.
func TestOtherProtocols(t *testing.T) {
	for in, name := range aliens {
		want := "this looks like " + name
		if name == "" {
			want = "none is a message"
		}
		for _, pieces := range [][][]byte{{[]byte(in)}, bytewise([]byte(in)), {[]byte(in[:1]), []byte(in[1:])}} {
			o := play(nil, pieces...)
			if o.kinds() != "other protocol: connection closed" {
				t.Errorf("%q: %s", in, o.kinds())
				continue
			}
			got := o.peerErrors[0].Error()
			for _, part := range strings.SplitN(want, ": ", 2) {
				if !strings.Contains(got, part) || !strings.Contains(got, "192.0.2.7:4711") {
					t.Errorf("%q: %s", in, got)
				}
			}
		}
	}
	for _, in := range []string{
		hexPacked, "41" + hexPacked, "16" + hexPacked, "c0 47 45" + hexPacked,
		"0d 0a" + hexPacked, "a3 616263" + hexPacked,
	} {
		for _, pieces := range [][][]byte{{unhex(in)}, bytewise(unhex(in))} {
			if o := play(nil, pieces...); o.kinds() != "" || len(o.events) != 2 {
				t.Errorf("%s: %s, events %q", in, o.kinds(), o.events)
			}
		}
	}
}

// TestAnswers: heartbeats of one address are answered a few times a second, those of others too.
func TestAnswers(t *testing.T) {
	var a answers
	one, other := &net.UDPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 24225}, &net.UDPAddr{
		IP:   net.IPv4(192, 0, 2, 2),
		Port: 24225,
	}
	given := 0
	for range 1000 {
		if a.may(one, 1) {
			given++
		}
	}
	if given != maxAnswers {
		t.Errorf("%d answers", given)
	}
	if !a.may(one, 2e9) {
		t.Error("no answer a second later")
	}
	_ = a.may(other, 2e9)
}

// TestMostConnections: a new connection takes the place of the one that is idle longest.
func TestMostConnections(t *testing.T) {
	s := &Server{Handler: nothing{}, MaxConnections: 4}
	bubble(t, s, func(t *testing.T, p *pipes, peerErrors func() string) {
		var peers []*peer
		for range 12 {
			peers = append(peers, p.peer())
			write(t, peers[len(peers)-1], withID('a'))
			<-time.After(time.Second)
		}
		for i, q := range peers {
			if q.closed() && i >= 8 {
				t.Errorf("connection %d was closed", i)
			}
			_ = q.Close()
		}
		if n := strings.Count(peerErrors(), "too many connections"); n != 8 {
			t.Errorf("%d: %s", n, peerErrors())
		}
	})
}
