// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"bytes"
	"fmt"
	"strings"
)

// A wire is one case of a server: bytes in, and what must come of them.
type wire struct {
	name   string
	in     string   // see naming
	events []string // under the tag $t
	acks   string   // see naming
	closes bool     // the server closes the connection; otherwise it stays
	hang   bool     // the suite sends nothing behind, and closes
	loose  bool     // acked or not, both is right
	acksOnly,
	ordered bool
	setting string // of the server; "" is plain
}

// wires runs cases, each in one write and byte by byte.
func (tr *trial) wires(list ...wire) {
	for _, w := range list {
		if w.setting == "" {
			w.setting = "plain"
		}
		tr.run(w.name, func(p *probe) { w.play(p, tr.server(p, w.setting), false) })
		if len(w.in) < 4<<10 {
			tr.run(w.name+", byte by byte", func(p *probe) { w.play(p, tr.server(p, w.setting), true) })
		}
	}
}

// play runs one case.
func (w *wire) play(p *probe, s *server, single bool) {
	n := newNaming()
	var other *conn
	if w.closes {
		other = s.dial(p)
	}
	c := s.dial(p)
	in := n.bytes(w.in)
	if single {
		c.send(bytewise(in)...)
	} else {
		c.send(in)
	}
	w.check(p, s, c, other, n)
}

// check looks at what came of a case. Where the connection is closed, the fence is sent on another
// one, which must not suffer.
func (w *wire) check(p *probe, s *server, c, other *conn, n *naming) {
	p.Helper()
	var acks []byte
	id := ""
	switch {
	case w.hang:
		c.hangUp()
		acks, c = c.untilClosed(), other
	case w.closes:
		acks, c = c.untilClosed(), other
	default:
		acks, id = c.fence()
	}
	if want := n.bytes(w.acks); !bytes.Equal(acks, want) && !w.loose {
		p.Errorf("the server wrote % x, want % x", clip(acks), clip(want))
	}
	if w.acksOnly {
		return
	}
	wantLines(p, s.settle(p, c, id, n.tag), w.events, w.ordered)
}

// packed is a PackedForward message with options as pairs, both in hexadecimal.
func packed(payload []byte, options ...string) string {
	return "93 $t " + bin(string(payload)) + fmt.Sprintf("8%x ", len(options)/2) + strings.Join(options, " ")
}
