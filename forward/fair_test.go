// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"bytes"
	"context"
	"net"
	"runtime"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/spillwaylog/spillway/forward/internal/wire"
	"github.com/spillwaylog/spillway/internal/needs"
	"github.com/spillwaylog/spillway/msgpack"
)

// hugeChunk is a gzip chunk of size bytes of entries.
func hugeChunk(t testing.TB, size int) []byte {
	var out bytes.Buffer
	z, err := gzip.NewWriterLevel(&out, gzip.BestSpeed)
	if err != nil {
		t.Fatal(err)
	}
	for part := entries(1000); size > 0; size -= len(part) {
		if _, err := z.Write(part); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	b := append(wire.AppendHead(nil, "huge", out.Len()), out.Bytes()...)
	b = msgpack.AppendMapHeader(b, 2)
	b = msgpack.AppendString(msgpack.AppendString(b, "compressed"), "gzip")
	return msgpack.AppendString(msgpack.AppendString(b, "chunk"), "huge")
}

// While one connection's chunk of 250 MB is decompressed, on however few cores, small messages of
// another one are stored and acked.
func TestLargeDoesNotStarveSmall(t *testing.T) {
	needs.Time(t, "hundreds of megabytes")
	size := 250 << 20
	if raceEnabled {
		size = 100 << 20
	}
	message := hugeChunk(t, size)
	for _, cores := range []int{1, 2} {
		t.Run(map[int]string{1: "one core", 2: "two cores"}[cores], func(t *testing.T) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(cores))
			stored := make(chan struct{})
			s := &Server{Handler: HandlerFunc(func(_ context.Context, c *Chunk) error {
				if c.Tag == "huge" {
					close(stored)
				}
				return nil
			})}
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			served := make(chan error)
			go func() { served <- s.Serve(l) }()
			dial := func() net.Conn {
				c, err := net.Dial("tcp", l.Addr().String())
				if err != nil {
					t.Fatal(err)
				}
				return c
			}
			huge, small := dial(), dial()
			defer huge.Close()
			defer small.Close()
			if _, err := huge.Write(message); err != nil {
				t.Fatal(err)
			}
			until(t, func() bool { return s.Stats().Memory > 16<<20 }) // it has begun
			between, over := 0, false
			for !over {
				select {
				case <-stored:
					over = true
				default:
					write(t, small, withID('s'))
					if got := readAll(t, small, len(ackOf("s"))); !bytes.Equal(got, ackOf("s")) {
						t.Fatalf("%x", got)
					}
					between++
				}
			}
			if between < 3 { // on one core the scheduler looks at the network a hundred times a second
				t.Errorf("%d small messages were acked meanwhile", between)
			}
			t.Logf("%d small messages were acked meanwhile", between)
			if err := s.Shutdown(context.Background()); err != nil {
				t.Error(err)
			}
			<-served
		})
	}
}
