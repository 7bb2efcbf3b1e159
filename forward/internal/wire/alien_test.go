// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"testing"

	"github.com/spillwaylog/spillway/forward/internal/vectors"
)

// aliens are first bytes of other protocols.
var aliens = []string{
	"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
	"POST /x HTTP/1.0\r\n\r\n",
	"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
	"SSH-2.0-OpenSSH_9.6\r\n",
	"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
	"<34>Oct 11 22:14:15 host su: failed\n",
	"<34>1 2026-11-22T22:14:15Z host su - - - failed\n",
	"47 <34>1 2026-11-22T22:14:15Z host su - failed\n",
	"metric.name 1 1441588984\n",
	"hi\r\n",
	"2W\x00\x00\x00\x012C\x00\x00",
	"AMQP\x00\x00\x09\x01",
	"\x10\x1a\x00\x04MQTT\x04\x02",
	"\x00\x00\x00\x08\x04\xd2\x16\x2f",
	"PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n",
	"\x00\x00\x00\x23\x00\x12\x00\x03\x00\x00\x00\x01\x00\x0aconsumer-1", // Kafka: too many values
}

// FuzzAlien: that more bytes are needed is said only of few, and what is known of some is not
// otherwise when more have come.
func FuzzAlien(f *testing.F) {
	for _, in := range aliens {
		f.Add([]byte(in))
	}
	f.Add(vectors.Unhex(vectors.Packed))
	f.Fuzz(func(t *testing.T, b []byte) {
		for n := range len(b) + 1 {
			name, more := Alien(b[:n])
			if more && (n > maxText || name != "") {
				t.Fatalf("%q: %q, and more is needed", b[:n], name)
			}
		}
	})
}
