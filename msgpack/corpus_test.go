// SPDX-License-Identifier: Apache-2.0

package msgpack

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
)

// What benchmarks read. Lengths, kinds and values change from event to event, as they do in life,
// so that a branch predictor finds in them no more than it finds there.

// smallEvents returns n entries [EventTime, record of four keys] in a row, 140 bytes each on
// average.
func smallEvents(n int) []byte {
	r := rand.New(rand.NewPCG(1, 2))
	levels := []string{"info", "info", "info", "info", "debug", "warning", "error"}
	paths := []string{"/", "/index.html", "/api/v1/orders", "/api/v1/users/1234/profile", "/static/app.css", "/healthz"}
	var b []byte
	for i := range n {
		b = AppendArrayHeader(b, 2)
		b = appendTestTime(b, uint32(1441588984+i/1000), uint32(r.IntN(1e9)))
		b = AppendMapHeader(b, 4)
		b = AppendString(b, "level")
		b = AppendString(b, levels[r.IntN(len(levels))])
		b = AppendString(b, "message")
		b = AppendString(b, fmt.Sprintf("GET %s answered by upstream %d after %d attempts", paths[r.IntN(len(paths))],
			r.IntN(300), 1+r.IntN(3)))
		b = AppendString(b, "host")
		b = AppendString(b, fmt.Sprintf("web-%02d.eu-west.example", r.IntN(12)))
		b = AppendString(b, "latency_us")
		b = AppendInt(b, int64(r.ExpFloat64()*2000))
	}
	return b
}

// accessRecord returns a record of ten fields and 450 bytes: strings, integers, a float, a bool, a
// nested map.
func accessRecord() []byte {
	b := AppendMapHeader(nil, 10)
	str := func(k, v string) { b = AppendString(AppendString(b, k), v) }
	str("remote", "203.0.113.77")
	str("host", "shop.example.com")
	str("method", "GET")
	str("url", "/api/v2/catalogue/items/84512?currency=EUR&include=stock,price,images&session=4f1c9a77e0b2d5886a13bc90")
	b = AppendInt(AppendString(b, "status"), 200)
	b = AppendInt(AppendString(b, "bytes"), 18342)
	b = AppendFloat64(AppendString(b, "duration"), 0.0427)
	b = AppendBool(AppendString(b, "cached"), false)
	str("agent", "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Safari/537.36 Edg/131.0.0.0")
	b = AppendMapHeader(AppendString(b, "kubernetes"), 3)
	str("pod", "checkout-7d9c5bb6f4-x2x8q")
	str("namespace", "production-eu-west-1")
	str("container", "nginx-ingress-controller-public")
	return b
}

// foreignRecord returns a record whose text is mostly not ASCII, or has to be escaped.
func foreignRecord() []byte {
	b := AppendMapHeader(nil, 3)
	b = AppendString(AppendString(b, "message"),
		"Bestellung 4711 für Jürgen Müßiggänger aus Köln: „Süßes Gebäck“, 12,50 €, Größe übergroß")
	b = AppendString(AppendString(b, "説明"), "注文は正常に処理されました。次の営業日に発送いたします。ご利用ありがとうございます。")
	b = AppendString(AppendString(b, "stack"),
		"panic: \"no such order\"\n\tgoroutine 1 [running]:\n\tmain.main()\n\t\tC:\\src\\main.go:17 +0x1d\n")
	return b
}

// appendTestTime writes an EventTime as Forward does: seconds and nanoseconds in a fixext8 of type
// 0.
func appendTestTime(b []byte, sec, nsec uint32) []byte {
	b = AppendExtHeader(b, 0, 8)
	b = binary.BigEndian.AppendUint32(b, sec)
	return binary.BigEndian.AppendUint32(b, nsec)
}
