// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

// Rules 24 to 27 and 46: what is acked, and when.

func rule24(tr *trial) {
	only := func(name, in, acks string) wire { return wire{name: name, in: in, acks: acks, acksOnly: true} }
	tr.wires(
		only("Message mode without an option", "93 $t 05 $rec", ""),
		only("Message mode without an id", "94 $t 05 $rec 81 a4 73697a65 01", ""),
		only("Forward mode without an option", "92 $t 91 $e1", ""),
		only("Forward mode without an id", "93 $t 91 $e1 81 a4 73697a65 01", ""),
		only("PackedForward mode without an option", "92 $t c4 10 $e1", ""),
		only("PackedForward mode without an id", "93 $t c4 10 $e1 81 a4 73697a65 01", ""),
		only("Message mode", "94 $t 05 $rec 81 $chunk", "$ack"),
		only("Forward mode", "93 $t 92 $e1 $e2 81 $chunk", "$ack"),
		only("PackedForward mode", "93 $t c4 20 $e1 $e2 82 a4 73697a65 02 $chunk", "$ack"),
		only("CompressedPackedForward mode", compressed("gzip", gzipped(unhex(vector1+vector2))), "$ack"),
	)
}

func rule25(tr *trial) {
	id := func(name, id string) wire {
		return wire{name: name, in: "94 $t 05 $rec 81" + keyChunk + id, acks: ackOf + id, acksOnly: true}
	}
	random := newID()
	list := []wire{
		id("24 characters", str(random)),
		id("with a newline, as Fluentd's", str(newID()+"\n")),
		id("one byte", str("x")),
		id("31 bytes", str(strings.Repeat("x", 31))),
		id("32 bytes", str(strings.Repeat("x", 32))),
		id("255 bytes", str(strings.Repeat("x", 255))),
		id("1,024 bytes", str(strings.Repeat("x", 1024))),
		id("no UTF-8", str("\xff\xfe\x00")),
		id("128 hexadecimal characters, as Fluent Bit's", str(strings.Repeat("0123456789abcdef", 8))),
		id("bin of 3 bytes", bin("\x00\xff\n")),
		id("bin of 16 bytes", bin(strings.Repeat("\x9a", 16))),
		id("bin of 300 bytes", bin(strings.Repeat("\x9a", 300))),
	}
	// Encoded in a longer form than needed it comes back as the same string, in whatever form.
	tr.wires(append(list, wire{
		name: "a str16 of one byte", in: "94 $t 05 $rec 81 " + keyChunk + "da 0001 79",
		acks: ackOf + "a1 79", acksOnly: true,
	})...)
}

func rule26(tr *trial) {
	tr.run("50 messages in flight", func(p *probe) {
		var in, acks string
		for i := range 50 {
			id := str(newID())
			switch i % 5 {
			case 0:
				in += "93 $t 90 81" + keyChunk + id
			case 1:
				in += "93 $t 05 $rec"
				continue
			case 2:
				in += "94 $t 05 $rec 81" + keyChunk + id
			case 3:
				in += "93 $t 92 $e1 $e2 81" + keyChunk + id
			default:
				in += "93 $t c4 20 $e1 $e2 81" + keyChunk + id
			}
			acks += ackOf + id
		}
		w := wire{in: in, acks: acks, acksOnly: true}
		w.play(p, tr.server(p, "plain"), false)
	})
	tr.run("a large one before small ones", func(p *probe) {
		body := strings.Repeat(vector1, 20000)
		ids := []string{str(newID()), str(newID()), str(newID())}
		in := fmt.Sprintf("93 $t c6 %08x %s 81", 16*20000, body) + keyChunk + ids[0] + "94 $t 05 $rec 81" +
			keyChunk + ids[1] + "93 $t 90 81" + keyChunk + ids[2]
		w := wire{in: in, acks: ackOf + ids[0] + ackOf + ids[1] + ackOf + ids[2], acksOnly: true}
		w.play(p, tr.server(p, "plain"), false)
	})
}

// stream sends n messages with events of their own, each acked, and returns the ids.
func stream(c *conn, names *naming, n int) []string {
	head, middle := names.bytes("94 $t 05 81 a1 6d b8"), unhex("81"+keyChunk+"b8")
	var b []byte
	ids := make([]string, n)
	for i := range ids {
		ids[i] = newID()
		b = append(append(append(append(b, head...), ids[i]...), middle...), ids[i]...)
	}
	c.send(b)
	return ids
}

// readAcks reads acks until an error, or until there are n.
func readAcks(p *probe, r *valueReader, n int) (ids []string, err error) {
	p.Helper()
	for len(ids) < n {
		v, err := r.next()
		if err != nil {
			return ids, err
		}
		id, ok := v.get("ack")
		if !ok {
			p.Fatalf("no ack: % x", clip(v.raw))
		}
		ids = append(ids, id.text)
	}
	return ids, nil
}

// stored returns the ids of stream whose events a server wrote.
func stored(p *probe, s *server, tag string) map[string]bool {
	p.Helper()
	have := map[string]bool{}
	for _, l := range s.settle(p, nil, "", tag) {
		id := strings.TrimSuffix(strings.TrimPrefix(l.rec, `{"m":"`), `"}`)
		if have[id] {
			p.Errorf("an event is there twice: %s", l.rec)
		}
		have[id] = true
	}
	return have
}

// again starts a server anew on the data of another one.
func again(tr *trial, p *probe, s *server, dir string) *server {
	p.Helper()
	return serve(p, tr.t, &setting{dir: dir, server: server{lines: s.lines}})
}

func rule27(tr *trial) {
	tr.run("acked events survive kill -9", func(p *probe) {
		if foreign() {
			p.unseen("needs a server that the suite may kill and start again")
		}
		dir := tr.t.TempDir()
		s := serve(p, tr.t, &setting{dir: dir})
		names, c := newNaming(), s.dial(p)
		stream(c, names, 200)
		acked, err := readAcks(p, newValueReader(c), 100)
		p.must(err)
		s.own.kill()
		s = again(tr, p, s, dir)
		have := stored(p, s, names.tag)
		for _, id := range acked {
			if !have[id] {
				p.Errorf("an event is lost whose ack was read")
				return
			}
		}
	})
}

func rule46(tr *trial) {
	tr.run("each chunk is stored and acked, or neither", func(p *probe) {
		if foreign() {
			p.unseen("needs a server that the suite may stop and start again")
		}
		dir := tr.t.TempDir()
		s := serve(p, tr.t, &setting{dir: dir})
		names, c := newNaming(), s.dial(p)
		const count = 50_000
		sending := make(chan []string, 1)
		go func() { sending <- stream(c, names, count) }()
		r := newValueReader(c)
		acked, err := readAcks(p, r, 1)
		p.must(err)
		s.own.interrupt(p)
		rest, err := readAcks(p, r, count)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			p.Errorf("the connection is not closed")
		}
		c.Close()
		acked = append(acked, rest...)
		sent := <-sending
		if !slices.Equal(acked, sent[:len(acked)]) {
			p.Errorf("acks out of order")
		}
		until(p, "the process ends", s.own.over)
		p.Logf("%d of %d acked", len(acked), len(sent))
		s = again(tr, p, s, dir)
		have := stored(p, s, names.tag)
		for _, id := range acked {
			if !have[id] {
				p.Errorf("an event is lost whose ack was read")
			}
			delete(have, id)
		}
		if extra := slices.Collect(maps.Keys(have)); len(extra) > 0 {
			p.Errorf("%d events are stored that were not acked", len(extra))
		}
	})
}
