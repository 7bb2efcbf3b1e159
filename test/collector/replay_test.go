// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/msgpack"
	"github.com/spillwaylog/spillway/test/internal/rig"
)

// oddEntries are events with all that a line can have in it: each is [time, record], or [[time,
// metadata], record].
func oddEntries() [][]byte {
	str := func(s string) []byte { return msgpack.AppendString(nil, s) }
	object := func(pairs ...[]byte) []byte {
		return append(msgpack.AppendMapHeader(nil, len(pairs)/2), bytes.Join(pairs, nil)...)
	}
	one := func(value []byte) []byte { return object(str("v"), value) }
	at := forward.AppendEventTime(nil, 1795226584, 123456789)
	f64 := func(f float64) []byte { return msgpack.AppendFloat64(nil, f) }
	var entries [][]byte
	add := func(when, record []byte) { entries = append(entries, bytes.Join([][]byte{{0x92}, when, record}, nil)) }
	for _, record := range [][]byte{
		object(),
		object(str("time"), str("x"), str("tag"), str("y"), str("tag_"), msgpack.AppendNil(nil), str("metadata"),
			object(), str("ts"), f64(1), str("logger"), str("z")),
		object(str("k"), f64(1), str("k"), f64(2)), // twice
		object(msgpack.AppendInt(nil, 5), str("a"), msgpack.AppendNil(nil), str("b"), []byte{0x91, 0x01},
			object(msgpack.AppendBool(nil, true), str("c"))),
		object(str("a\xff"), str("\xed\xa0\x80"), str("\ufffd"), str("\u2028\x00\"\\\n\x7f日本 🙂")),
		object(str("undecodable"), str("gaE=")),
		bytes.Join([][]byte{bytes.Repeat([]byte{0x81, 0xa1, 'k'}, msgpack.DefaultDepth-1), {0x80}}, nil),
	} {
		add(at, record)
	}
	for _, f := range []float64{
		math.NaN(), math.Inf(1), math.Inf(-1), 0, math.Copysign(0, -1), 1, 1e20, 1e21, 1e-6,
		1e-7, 1 << 53, 1 << 64, 0.1, 5e-324, math.MaxFloat64,
	} {
		add(at, one(f64(f)))
		add(at, one(msgpack.AppendFloat32(nil, float32(f))))
	}
	for _, v := range [][]byte{
		msgpack.AppendUint(nil, math.MaxUint64), msgpack.AppendInt(nil, math.MinInt64),
		msgpack.AppendBin(nil, []byte("a\xffb")),
		msgpack.AppendExt(nil, 7, []byte("ab")), msgpack.AppendExt(nil, -1, nil), forward.AppendEventTime(nil, 5, 6),
	} {
		add(at, one(v))
	}
	for _, when := range [][]byte{
		forward.AppendEventTime(nil, 0, 1_000_000), forward.AppendEventTime(nil, math.MaxUint32, 999_999_999),
		msgpack.AppendInt(nil, -1), msgpack.AppendInt(nil, math.MaxInt64), msgpack.AppendInt(nil, math.MinInt64),
		f64(-0.75), f64(-62167219200.5), f64(253402300800.25), f64(7e9 + 0.123456),
	} {
		add(when, one(str("time")))
		add(bytes.Join([][]byte{{0x92}, when, object(str("stream"), str("stdout"))}, nil), one(str("metadata")))
	}
	return entries
}

// TestReplay sends the collector's own output to another collector, through send: both files are
// the same.
func TestReplay(t *testing.T) {
	t.Parallel()
	ways := []struct {
		query string
		flags []string
	}{
		{"", []string{"--time-key", "time", "--tag-key", "tag"}},
		{
			"?time_key=ts&time_format=unix&tag_key=logger",
			[]string{"--time-key", "ts", "--time-format", "unix", "--tag-key", "logger"},
		},
		{"?time_format=unix_ms", []string{"--time-key", "time", "--time-format", "unix_ms", "--tag-key", "tag"}},
		{
			"?time_format=02/Jan/2006:15:04:05.000%20-0700",
			[]string{"--time-key", "time", "--time-format", "02/Jan/2006:15:04:05.000 -0700", "--tag-key", "tag"},
		},
	}
	dir := t.TempDir()
	file := func(name string, i int) string { return filepath.Join(dir, fmt.Sprint(name, i, ".jsonl")) }
	first := &rig.Setup{Data: filepath.Join(dir, "data")}
	for i, way := range ways {
		first.To = append(first.To, "file://"+file("first", i)+way.query)
	}
	c := rig.StartCollector(t, first)
	client := &forward.Client{Address: c.Addr}
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	lines := 0
	for i, tag := range []string{"app", "", "app.web", "a\"\n\x00 ü", strings.Repeat("t", forward.MaxTag), "\xff"} {
		for k, entry := range oddEntries() {
			if (i+k)%3 == 0 { // one line each, with changing tags
				rig.Must(t, client.Send(ctx, &forward.Chunk{Tag: tag, Entries: entry, Events: 1}))
				lines++
			}
		}
		all := oddEntries()
		rig.Must(t, client.Send(ctx, &forward.Chunk{Tag: tag, Entries: bytes.Join(all, nil), Events: len(all)}))
		lines += len(all)
	}
	c.Stop()
	for i, way := range ways {
		t.Run(fmt.Sprint(way.flags), func(t *testing.T) {
			want, err := os.ReadFile(file("first", i))
			rig.Must(t, err)
			if n := bytes.Count(want, []byte{'\n'}); n != lines {
				t.Fatalf("%d lines were written, want %d", n, lines)
			}
			c := rig.StartCollector(t, &rig.Setup{
				To:   []string{"file://" + file("second", i) + way.query},
				Data: filepath.Join(dir, fmt.Sprint("data", i)),
			})
			cmd := exec.Command(rig.Checked.Build(t),
				append([]string{"send", "--to", "forward://" + c.Addr}, way.flags...)...)
			cmd.Stdin = bytes.NewReader(want)
			text, err := cmd.CombinedOutput()
			if err != nil || string(text) != fmt.Sprintf("%d acked\n", lines) {
				t.Fatalf("send: %v\n%s", err, text)
			}
			c.Stop()
			got, err := os.ReadFile(file("second", i))
			rig.Must(t, err)
			if !bytes.Equal(got, want) {
				a, b := strings.Split(string(want), "\n"), strings.Split(string(got), "\n")
				for k := range min(len(a), len(b)) {
					if a[k] != b[k] {
						t.Fatalf("line %d of %d and %d\n%s\ncame back as\n%s", k+1, len(a), len(b), rig.Tail(a[k], 500),
							rig.Tail(b[k], 500))
					}
				}
				t.Fatalf("%d lines came back as %d", len(a), len(b))
			}
		})
	}
}
