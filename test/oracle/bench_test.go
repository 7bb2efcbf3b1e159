// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"bytes"
	"testing"

	"github.com/tinylib/msgp/msgp"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/msgpack"
)

// accessLog is a record of ten fields and about 450 bytes.
func accessLog() []byte {
	b := msgpack.AppendMapHeader(nil, 10)
	for _, f := range []struct {
		key   string
		value any
	}{
		{"host", "web-17.eu-central.example"},
		{"remote", "203.0.113.195"},
		{"method", "GET"},
		{"path", "/api/v2/customers/8812341/orders?page=3&sort=created&filter=open"},
		{"status", int64(200)},
		{"size", int64(18233)},
		{"seconds", 0.04821},
		{"referer", "https://shop.example/account/orders"},
		{"agent", "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36"},
		{"trace", "4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7 sampled by the gateway"},
	} {
		b = appendValue(msgpack.AppendString(b, f.key), f.value)
	}
	return b
}

// smallEvents are entries of about 140 bytes and four keys.
func smallEvents() []byte {
	var b []byte
	for n := range 1000 {
		b = forward.AppendEventTime(msgpack.AppendArrayHeader(b, 2), 1700000000, uint32(n))
		b = msgpack.AppendMapHeader(b, 4)
		for _, f := range []struct {
			key   string
			value any
		}{
			{"level", "INFO"},
			{"msg", "order placed by a customer who was not logged in"},
			{"id", int64(n)},
			{"trace", "4bf92f3577b34da6a3ce929d0e0e4736"},
		} {
			b = appendValue(msgpack.AppendString(b, f.key), f.value)
		}
	}
	return b
}

func BenchmarkSkip(b *testing.B) {
	events := smallEvents()
	b.Run("own", func(b *testing.B) {
		b.SetBytes(int64(len(events)))
		b.ReportAllocs()
		for b.Loop() {
			for rest := events; len(rest) > 0; {
				n, err := msgpack.Skip(rest)
				if err != nil {
					b.Fatal(err)
				}
				rest = rest[n:]
			}
		}
	})
	b.Run("msgp", func(b *testing.B) {
		b.SetBytes(int64(len(events)))
		b.ReportAllocs()
		for b.Loop() {
			var err error
			for rest := events; len(rest) > 0; {
				if rest, err = msgp.Skip(rest); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
}

func BenchmarkJSON(b *testing.B) {
	record := accessLog()
	b.Run("own", func(b *testing.B) {
		b.SetBytes(int64(len(record)))
		b.ReportAllocs()
		var out []byte
		for b.Loop() {
			var err error
			if out, _, err = msgpack.AppendJSON(out[:0], record, nil); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("msgp", func(b *testing.B) {
		b.SetBytes(int64(len(record)))
		b.ReportAllocs()
		var out bytes.Buffer
		for b.Loop() {
			out.Reset()
			if _, err := msgp.CopyToJSON(&out, bytes.NewReader(record)); err != nil {
				b.Fatal(err)
			}
		}
	})
}
