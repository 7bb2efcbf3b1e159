// SPDX-License-Identifier: Apache-2.0

package test

import (
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/binary"
	"encoding/hex"
	"testing"
)

// A fluentBit makes messages as Fluent Bit's forward output does: its chunk ids are hashes of the
// entries, so equal content has equal ids; an entry has metadata beside its time; the option has
// chunk, size, compressed and fluent_signal, in this order.
type fluentBit struct {
	gzip   bool
	signal byte
}

// entry is [[EventTime, {}], {"log": text}].
func (fluentBit) entry(b []byte, e event) []byte {
	b = append(b, 0x92, 0x92, 0xd7, 0x00)
	b = binary.BigEndian.AppendUint32(b, e.sec)
	b = binary.BigEndian.AppendUint32(b, e.nsec)
	b = append(b, 0x80, 0x81)
	return appendStr(appendStr(b, "name"), e.name)
}

// chunk is one message with its id.
func (f fluentBit) chunk(t testing.TB, tag string, names ...string) (message []byte, id string) {
	t.Helper()
	var entries []byte
	for _, n := range names {
		entries = f.entry(entries, named(n))
	}
	sum := sha512.Sum512(entries)
	id = hex.EncodeToString(sum[:16])
	options := byte(3)
	if f.gzip {
		options++
		var z bytes.Buffer
		w := gzip.NewWriter(&z)
		_, err := w.Write(entries)
		must(t, err)
		must(t, w.Close())
		entries = z.Bytes()
	}
	m := appendBin(appendStr([]byte{0x93}, tag), entries)
	m = append(m, 0x80|options)
	m = appendStr(appendStr(m, "chunk"), id)
	m = append(appendStr(m, "size"), byte(len(names)))
	if f.gzip {
		m = appendStr(appendStr(m, "compressed"), "gzip")
	}
	return append(appendStr(m, "fluent_signal"), f.signal), id
}

// TestFluentBitRepeats: what Fluent Bit sends again because it missed an ack comes on a fresh
// connection from the same host, and is a repeat. Equal content that is new comes with the same id:
// on the same connection, or from another host.
func TestFluentBitRepeats(t *testing.T) {
	for _, f := range []fluentBit{{}, {gzip: true}} {
		t.Run(map[bool]string{false: "plain", true: "gzip"}[f.gzip], func(t *testing.T) {
			s, out := newSetup(t)
			c := startCollector(t, s)
			var want []string

			// A heartbeat that says the same each second, without a time of its own: every one of
			// them counts.
			m, id := f.chunk(t, "fb", "tick", "tick")
			l := c.lane()
			for range 5 {
				l.send(m, id)
				want = append(want, "tick", "tick")
			}
			// The same from another host.
			c.laneFrom("127.0.0.2").send(m, id)
			want = append(want, "tick", "tick")

			// The ack gets lost, and the connection with it; then the collector dies before the
			// next try.
			lost, lostID := f.chunk(t, "fb", "lost 1", "lost 2")
			torn := c.lane()
			torn.write(lost)
			torn.conn.Close()
			c.lane().send(lost, lostID)
			c.lane().send(lost, lostID)
			c.kill()
			c = startCollector(t, s)
			c.lane().send(lost, lostID)
			// It retries with compression switched on or off by a new configuration: the entries
			// are the same.
			other, otherID := fluentBit{gzip: !f.gzip}.chunk(t, "fb", "lost 1", "lost 2")
			c.lane().send(other, otherID)
			want = append(want, "lost 1", "lost 2")

			// All five ticks again, from the first host, on one fresh connection, as if all acks
			// had been lost when the collector died. A sixth one is new.
			l = c.lane()
			for range 6 {
				l.send(m, id)
			}
			a := c.account()
			if err := a.check(); err != nil {
				t.Error(err)
			}
			if a["repeated_chunks"] != 2+5 {
				t.Errorf("%d chunks were repeats, want 7", a["repeated_chunks"])
			}
			want = append(want, "tick", "tick")
			// Metrics are no logs: refused, no ack, and the connection stays.
			metrics, _ := fluentBit{signal: 1}.chunk(t, "fb", "metric")
			l.write(metrics)
			last, lastID := f.chunk(t, "fb", "last")
			l.send(last, lastID)
			want = append(want, "last")

			waitLines(t, out, len(want))
			c.stop()
			if a := c.lastAccount(); a["refused_messages"] != 1 || a["refused"] != 0 {
				t.Errorf("%d messages refused with %d events that were seen; want 1 with none", a["refused_messages"],
					a["refused"])
			}
			wantNames(t, readLines(t, out), want...)
		})
	}
}

// TestFluentBitHandshake: Fluent Bit logs in on each connection; a resend behind a fresh login is a
// resend.
func TestFluentBitHandshake(t *testing.T) {
	t.Setenv("SPILLWAY_TEST_KEY", "secret")
	s, out := newSetup(t)
	s.listen = []string{"forward://127.0.0.1:0?shared_key_env=SPILLWAY_TEST_KEY"}
	c := startCollector(t, s)
	m, id := fluentBit{}.chunk(t, "fb", "logged in")
	for range 3 {
		l := c.lane()
		l.acks = greet(t, l.conn, "fluent-bit.example", "secret")
		l.send(m, id)
	}
	waitLines(t, out, 1)
	c.stop()
	wantNames(t, readLines(t, out), "logged in")
}
