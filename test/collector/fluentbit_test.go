// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/binary"
	"encoding/hex"
	"testing"

	"github.com/spillwaylog/spillway/test/internal/rig"
)

// A fluentBit makes messages as Fluent Bit's forward output does: its chunk ids are hashes of the
// entries, so equal content has equal ids; an entry has metadata beside its time; the option has
// chunk, size, compressed and fluent_signal, in this order.
type fluentBit struct {
	gzip   bool
	signal byte
}

// entry is [[EventTime, {}], {"log": text}].
func (fluentBit) entry(b []byte, e rig.Event) []byte {
	b = append(b, 0x92, 0x92, 0xd7, 0x00)
	b = binary.BigEndian.AppendUint32(b, e.Sec)
	b = binary.BigEndian.AppendUint32(b, e.Nsec)
	b = append(b, 0x80, 0x81)
	return rig.AppendStr(rig.AppendStr(b, "name"), e.Name)
}

// chunk is one message with its id.
func (f fluentBit) chunk(t testing.TB, tag string, names ...string) (message []byte, id string) {
	t.Helper()
	var entries []byte
	for _, n := range names {
		entries = f.entry(entries, rig.Named(n))
	}
	sum := sha512.Sum512(entries)
	id = hex.EncodeToString(sum[:16])
	options := byte(3)
	if f.gzip {
		options++
		var z bytes.Buffer
		w := gzip.NewWriter(&z)
		_, err := w.Write(entries)
		rig.Must(t, err)
		rig.Must(t, w.Close())
		entries = z.Bytes()
	}
	m := rig.AppendBin(rig.AppendStr([]byte{0x93}, tag), entries)
	m = append(m, 0x80|options)
	m = rig.AppendStr(rig.AppendStr(m, "chunk"), id)
	m = append(rig.AppendStr(m, "size"), byte(len(names)))
	if f.gzip {
		m = rig.AppendStr(rig.AppendStr(m, "compressed"), "gzip")
	}
	return append(rig.AppendStr(m, "fluent_signal"), f.signal), id
}

// TestFluentBitRepeats: what Fluent Bit sends again because it missed an ack comes on a fresh
// connection from the same host, and is a repeat. Equal content that is new comes with the same id:
// on the same connection, or from another host.
func TestFluentBitRepeats(t *testing.T) {
	for _, f := range []fluentBit{{}, {gzip: true}} {
		t.Run(map[bool]string{false: "plain", true: "gzip"}[f.gzip], func(t *testing.T) {
			s, out := rig.NewSetup(t)
			c := rig.StartCollector(t, s)
			var want []string

			// A heartbeat that says the same each second, without a time of its own: every one of
			// them counts.
			m, id := f.chunk(t, "fb", "tick", "tick")
			l := c.Lane()
			for range 5 {
				l.Send(m, id)
				want = append(want, "tick", "tick")
			}
			// The same from another host.
			c.LaneFrom("127.0.0.2").Send(m, id)
			want = append(want, "tick", "tick")

			// The ack gets lost, and the connection with it; then the collector dies before the
			// next try.
			lost, lostID := f.chunk(t, "fb", "lost 1", "lost 2")
			torn := c.Lane()
			torn.Write(lost)
			torn.Conn.Close()
			c.Lane().Send(lost, lostID)
			c.Lane().Send(lost, lostID)
			c.Kill()
			c = rig.StartCollector(t, s)
			c.Lane().Send(lost, lostID)
			// It retries with compression switched on or off by a new configuration: the entries
			// are the same.
			other, otherID := fluentBit{gzip: !f.gzip}.chunk(t, "fb", "lost 1", "lost 2")
			c.Lane().Send(other, otherID)
			want = append(want, "lost 1", "lost 2")

			// All five ticks again, from the first host, on one fresh connection, as if all acks
			// had been lost when the collector died. A sixth one is new.
			l = c.Lane()
			for range 6 {
				l.Send(m, id)
			}
			a := c.Account()
			if err := a.Check(); err != nil {
				t.Error(err)
			}
			if a["repeated_chunks"] != 2+5 {
				t.Errorf("%d chunks were repeats, want 7", a["repeated_chunks"])
			}
			want = append(want, "tick", "tick")
			// Metrics are no logs: refused, no ack, and the connection stays.
			metrics, _ := fluentBit{signal: 1}.chunk(t, "fb", "metric")
			l.Write(metrics)
			last, lastID := f.chunk(t, "fb", "last")
			l.Send(last, lastID)
			want = append(want, "last")

			rig.WaitLines(t, out, len(want))
			c.Stop()
			if a := c.LastAccount(); a["refused_messages"] != 1 || a["refused"] != 0 {
				t.Errorf("%d messages refused with %d events that were seen; want 1 with none", a["refused_messages"],
					a["refused"])
			}
			rig.WantNames(t, rig.ReadLines(t, out), want...)
		})
	}
}

// TestFluentBitHandshake: Fluent Bit logs in on each connection; a resend behind a fresh login is a
// resend.
func TestFluentBitHandshake(t *testing.T) {
	t.Setenv("SPILLWAY_TEST_KEY", "secret")
	s, out := rig.NewSetup(t)
	s.Listen = []string{"forward://127.0.0.1:0?shared_key_env=SPILLWAY_TEST_KEY"}
	c := rig.StartCollector(t, s)
	m, id := fluentBit{}.chunk(t, "fb", "logged in")
	for range 3 {
		l := c.Lane()
		l.Acks = greet(t, l.Conn, "fluent-bit.example", "secret")
		l.Send(m, id)
	}
	rig.WaitLines(t, out, 1)
	c.Stop()
	rig.WantNames(t, rig.ReadLines(t, out), "logged in")
}
