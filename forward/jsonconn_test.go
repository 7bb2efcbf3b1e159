// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"net"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
)

func TestRule43JSON(t *testing.T) {
	want := []string{`t 1441588984.000000000 {"m":"b"}`}
	id := `{"chunk":"p8n9gmxTQVC8/nh2wlKKeQ=="}`
	ack := `{"ack":"p8n9gmxTQVC8/nh2wlKKeQ=="}` + "\n"
	long := strings.Repeat("x", 300<<10)
	for _, w := range []struct {
		name, in   string
		events     []string
		acks       string
		peerErrors string
	}{
		{"one", `["t", 1441588984, {"m":"b"}]`, want, "", ""},
		{"several", `["t",1441588984,{"m":"b"}]["t",1441588984,{"m":"b"}]` + "\n\n" + `["t",1441588984,{"m":"b"}]` +
			"\n", slices.Repeat(want, 3), "", ""},
		{"float", `["t", 1.5, {"m":"b"}]`, []string{`t 1.500000000 {"m":"b"}`}, "", ""},
		{"newline within", "[\"t\"\n, 5 ,\r\n {\"m\":\n\"b\\n\"}]", []string{`t 5.000000000 {"m":"b\n"}`}, "", ""},
		{"repeated keys", `["t", 5, {"m":1,"a":2,"m":3}]`, []string{`t 5.000000000 {"m":1,"a":2,"m":3}`}, "", ""},
		{"ack", `["t", 1441588984, {"m":"b"}, ` + id + `]`, want, ack, ""},
		{
			"forward", `["t", [[1441588984, {"m":"b"}],[5, {"n":null}]], ` + id + `]`,
			[]string{want[0], `t 5.000000000 {"n":null}`},
			ack, "",
		},
		{"forward empty", `["t", [], ` + id + `]`, nil, ack, ""},
		{"object", `{"tag":"t"}["t", 1441588984, {"m":"b"}]`, want, "", ""},
		{"scalars", `[] 5 null "x" ["t", 1441588984, {"m":"b"}]`, want, "", "invalid message: message refused"},
		{"text as entries", `["t", "abc", ` + id + `]`, nil, "", "invalid chunk: message refused"},
		{
			"invalid", `["t", "x", {"m":"b"}]["t", 5, 6]["t", 1441588984, {"m":"b"}]`, want, "",
			"invalid chunk: message refused; invalid entries: kept",
		},
		{"syntax", `["t", 1441588984, {"m":"b"}, ` + id + `]["t", }`, want, ack, "garbage: connection closed"},
		{"partial", `["t", 1441588984, {"m":"b"}]["t", 5, {"m":`, want, "", "partial message: connection closed"},
		{
			"partial text", `["t", 1441588984, {"m":"b"}]["t", 5, {"m":"b`, want, "",
			"partial message: connection closed",
		},
		{"deep", strings.Repeat("[", 100000), nil, "", "too deep: connection closed"},
		{
			"long", `["t", 5, {"m":"` + long + `"}]["t", 1441588984, {"m":"b"}]`,
			[]string{`t 5.000000000 {"m":"` + long + `"}`, want[0]},
			"", "",
		},
		{
			"longer", `["t", 1441588984, {"m":"b"}]["t", 5, {"m":"` + strings.Repeat("x", 2<<20) + `"}]`, want, "",
			"too large: connection closed",
		},
	} {
		t.Run(w.name, func(t *testing.T) {
			in := []byte(w.in)
			splits := [][][]byte{{in}, {in[:1], in[1:]}}
			if len(in) < 1000 {
				splits = append(splits, bytewise(in))
			}
			for _, pieces := range splits {
				o := play(func(s *Server) { s.MaxChunk = 1 << 20 }, pieces...)
				if !slices.Equal(o.events, w.events) || string(o.acks) != w.acks || o.kinds() != w.peerErrors {
					t.Errorf("%.1000q, acks %q, %s\n%v", o.events, o.acks, o.kinds(), o.peerErrors)
				}
				if o.stats.Memory != 0 {
					t.Errorf("%d bytes left", o.stats.Memory)
				}
			}
		})
	}
}

// heap is what the program holds.
func heap() int64 {
	for range 3 { // what is in a sync.Pool goes with the second
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// A connection that waits for its next message holds next to nothing of the last one, which JSON's
// decoder would keep for ever.
func TestJSONIdle(t *testing.T) {
	s := &Server{Handler: nothing{}}
	sockets(t, s, func(t *testing.T, dial func() net.Conn) {
		const conns, ack = 4, `{"ack":"a"}` + "\n"
		for _, w := range []struct {
			in string
			n  int // acks
		}{
			{`["t", 5, {"m":"` + strings.Repeat("x", 1<<20) + `"}, {"chunk":"a"}]`, 1},
			{strings.Repeat(`["t", 5, {"m":"`+strings.Repeat("x", 500<<10)+`"}, {"chunk":"a"}]`, 3), 3},
		} {
			before := heap()
			open := make([]net.Conn, conns)
			for i := range open {
				open[i] = dial()
				write(t, open[i], []byte(w.in))
				if got := readAll(t, open[i], w.n*len(ack)); string(got) != strings.Repeat(ack, w.n) {
					t.Fatalf("%q", got)
				}
			}
			until(t, func() bool { return heap()-before <= conns<<19 }) // some are in the pool
			for _, c := range open {
				_ = c.Close()
			}
		}
	})
}

// The decoder of a large message has read into the messages behind it, large ones among them. Each
// is taken, once.
func TestJSONReadAhead(t *testing.T) {
	const ack = `{"ack":"a"}` + "\n"
	message := func(n int) string { return `["t", 5, {"m":"` + strings.Repeat("x", n) + `"}, {"chunk":"a"}]` }
	s := &Server{Handler: nothing{}}
	sockets(t, s, func(t *testing.T, dial func() net.Conn) {
		for _, w := range []struct{ large, small, n int }{
			{1 << 20, 20 << 10, 30},
			{100 << 10, 17 << 10, 50},
			{500 << 10, 5000, 100},
		} {
			in := strings.Repeat(message(w.large)+strings.Repeat(message(w.small), w.n), 3)
			c := dial()
			var sent sync.WaitGroup
			sent.Go(func() {
				if _, err := c.Write([]byte(in)); err != nil {
					t.Error(err)
				}
			})
			want := strings.Repeat(ack, 3*(1+w.n))
			if got := readAll(t, c, len(want)); string(got) != want {
				t.Errorf("%d acks instead of %d", len(got)/len(ack), 3*(1+w.n))
			}
			sent.Wait()
			_ = c.Close()
		}
	})
}

// What a message in progress takes counts, also while the rest of it is waited for, and whether it
// is large or not.
func TestJSONCounts(t *testing.T) {
	for _, n := range []int{8 << 10, 30 << 10, 300 << 10} {
		s := &Server{Handler: nothing{}}
		bubble(t, s, func(t *testing.T, p *pipes, _ func() string) {
			c := p.dial()
			write(t, c, []byte(`["t", 5, {"m":"`+strings.Repeat("x", n)))
			synctest.Wait()
			if got := s.Stats().Memory; got < 2*int64(n) {
				t.Errorf("%d bytes of a message count as %d", n, got)
			}
			_ = c.Close()
		})
	}
}
