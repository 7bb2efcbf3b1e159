// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/forward/internal/wire"
	"github.com/spillwaylog/spillway/internal/needs"
)

// An attack is many connections that send the beginning of a message and then a byte now and then,
// and come again when they are cut.
type attack struct {
	conns int
	half  int  // bytes that are sent at once, of a message twice as long
	apart bool // each from an address of its own
}

func (a attack) String() string {
	from := "one address"
	if a.apart {
		from = "many addresses"
	}
	return fmt.Sprintf("%d x %d KB, %s", a.conns, a.half>>10, from)
}

// run attacks an address until ctx ends.
func (a attack) run(ctx context.Context, wg *sync.WaitGroup, address string) {
	message := messageOf(2*a.half, "half")
	for i := range a.conns {
		wg.Go(func() {
			for ctx.Err() == nil {
				a.once(ctx, i, message, address)
			}
		})
	}
}

// once is one connection, until it is cut.
func (a attack) once(ctx context.Context, i int, message []byte, address string) {
	var d net.Dialer
	if a.apart {
		d.LocalAddr = &net.TCPAddr{IP: net.IPv4(127, 1, byte(i>>8), byte(i))}
	}
	nc, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return
	}
	defer nc.Close()
	stop := context.AfterFunc(ctx, func() { _ = nc.Close() })
	defer stop()
	if _, err := nc.Write(message[:a.half]); err != nil {
		return
	}
	tick := time.NewTicker(250 * time.Millisecond) // often enough, and what they cost is taken from the server
	defer tick.Stop()
	for at := a.half; at < len(message); at++ {
		if _, err := nc.Write(message[at : at+1]); err != nil {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// acked sends a message on a connection of its own, again and again until it is acked, as clients
// do. It returns how long that took, and how many connections.
func acked(t *testing.T, address string, message, ack []byte) (took time.Duration, tries int) {
	began := time.Now()
	got := make([]byte, len(ack))
	for tries = 1; ; tries++ {
		nc, err := net.Dial("tcp", address)
		if err == nil {
			_ = nc.SetDeadline(time.Now().Add(time.Minute))
			if _, err = nc.Write(message); err == nil {
				_, err = io.ReadFull(nc, got)
			}
			_ = nc.Close()
		}
		if err == nil && bytes.Equal(got, ack) {
			return time.Since(began), tries
		}
		if time.Since(began) > 4*time.Minute {
			t.Fatalf("no ack in %v: %v", time.Since(began), err)
		}
	}
}

// TestHalfSent: half-sent messages, however many, do not keep others from being acked.
func TestHalfSent(t *testing.T) {
	figures := needs.Rounds(t, "SPILLWAY_ATTACKS", 0, 0) > 0 // the whole of it takes minutes
	part, rounds := 8, 3                                     // of the memory and the attackers
	// So that it is short: whether a good sender is cut too matters to nobody here.
	stall := time.Second
	if figures {
		part, rounds, stall = 1, 10, DefaultStallTimeout
	}
	for _, memory := range []int64{DefaultMemory, 16 << 20} {
		for _, a := range []attack{
			{500, 150 << 10, false},
			{500, 150 << 10, true},
			{60, 3 << 20, false},
			{2000, 64 << 10, false},
			{2000, 60 << 10, true},
		} {
			if memory < DefaultMemory && !figures {
				continue
			}
			a.conns /= part
			t.Run(fmt.Sprintf("%d MiB, %v", memory/int64(part)>>20, a), func(t *testing.T) {
				needs.Time(t, "an attack")
				s := &Server{Handler: nothing{}, Memory: memory / int64(part), StallTimeout: stall}
				l, err := net.Listen("tcp", "127.0.0.1:0")
				if err != nil {
					t.Fatal(err)
				}
				served := make(chan error, 1)
				go func() { served <- s.Serve(l) }()
				address := l.Addr().String()
				ctx, stop := context.WithCancel(t.Context())
				var attackers sync.WaitGroup
				defer func() {
					stop()
					attackers.Wait()
					if err := s.Close(); err != nil {
						t.Error(err)
					}
					<-served
				}()
				a.run(ctx, &attackers, address)
				until(t, func() bool { return s.Stats().PeerErrors[PeerSlowSender] > 0 }) // memory is scarce
				for _, good := range []struct {
					name string
					size int
				}{{"tiny", 100}, {"60 KB", 60 << 10}, {"1 MB", 1 << 20}} {
					message, ack := messageOf(good.size, "good"), ackIDs("good")
					var took []time.Duration
					tries := 0
					for range rounds {
						d, n := acked(t, address, message, ack)
						took = append(took, d)
						tries += n
					}
					slices.SortFunc(took, cmp.Compare)
					t.Logf("%s: median %v, worst %v, %d tries of %d", good.name, took[len(took)/2], took[len(took)-1],
						tries, rounds)
				}
				st := s.Stats()
				t.Logf("%d connections were cut, %d bytes held; patience %v, looked %v of %v", st.PeerErrors[PeerSlowSender],
					st.Memory, s.watch.Patience(), time.Duration(s.watch.Now()), time.Duration(s.clock()))
			})
		}
	}
}

func ackIDs(id string) []byte { return wire.AppendAck(nil, []byte(id), false, false) }
