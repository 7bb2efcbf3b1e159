// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/msgpack"
)

// chaos is a handler of all three kinds that keeps chunks as long as it may, and looks whether they
// stay what they were.
type chaos struct {
	mu    sync.Mutex
	rng   *rand.Rand
	wrong []string
	later sync.WaitGroup
}

func (h *chaos) roll(n int) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.rng.IntN(n)
}

func (h *chaos) fail(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.wrong) < 5 {
		h.wrong = append(h.wrong, fmt.Sprintf(format, args...))
	}
}

func sumOf(c *Chunk) uint32 {
	sum := crc32.NewIEEE()
	for _, b := range [][]byte{c.ID, c.Entries, sentOf(c).Entries, c.Compressed} {
		_, _ = sum.Write(b)
		_, _ = sum.Write([]byte{0})
	}
	return sum.Sum32()
}

// check looks at a chunk: its id says how many entries it has, and of which kind.
func (h *chaos) check(c *Chunk) {
	n := 0
	for range c.All() {
		n++
	}
	if n != c.Events {
		h.fail("%d events, %d read", c.Events, n)
	}
	if c.ID == nil {
		return
	}
	var want, salt int
	if _, err := fmt.Sscanf(string(c.ID), "%d-%d", &want, &salt); err != nil || want != c.Events {
		h.fail("id %q: %d events", c.ID, c.Events)
	}
	if c.Compressed != nil {
		got := Chunk{Compressed: bytes.Clone(c.Compressed), Compression: c.Compression}
		if err := new(Inflater).Inflate(&got); err != nil || !bytes.Equal(got.Entries, c.Entries) {
			h.fail("id %q: %v", c.ID, err)
		}
	}
}

var errChaos = errors.New("not today")

func (h *chaos) verdict() error {
	if h.roll(40) == 0 {
		return errChaos
	}
	return nil
}

type chaosEach struct{ *chaos }

func (h chaosEach) ServeForward(_ context.Context, c *Chunk) error {
	h.check(c)
	return h.verdict()
}

type chaosGroup struct{ chaosEach }

func (h chaosGroup) ServeGroup(_ context.Context, chunks []*Chunk) (func(context.Context) error, error) {
	for _, c := range chunks {
		h.check(c)
	}
	err := h.verdict()
	if h.roll(2) == 0 {
		return nil, err
	}
	stored := make(chan struct{})
	time.AfterFunc(time.Duration(h.roll(2000))*time.Microsecond, func() { close(stored) })
	return func(ctx context.Context) error {
		select {
		case <-stored:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}, nil
}

type chaosAsync struct{ chaosEach }

func (h chaosAsync) StartForward(_ context.Context, c *Chunk, done func(error)) {
	h.check(c)
	sum, err := sumOf(c), h.verdict()
	finish := func() {
		if sumOf(c) != sum {
			h.fail("id %q changed while it was lent", c.ID)
		}
		done(err)
		if h.roll(4) == 0 {
			done(errChaos) // does not count
		}
	}
	switch h.roll(3) {
	case 0:
		finish()
	default:
		h.later.Add(1)
		time.AfterFunc(time.Duration(h.roll(3000))*time.Microsecond, func() {
			defer h.later.Done()
			finish()
		})
	}
}

// chaosMessage makes one message of any kind.
func chaosMessage(rng *rand.Rand) []byte {
	tag := fmt.Sprintf("t%d", rng.IntN(3))
	n := 1 << rng.IntN(12)
	c := Chunk{Tag: tag, Events: n, ID: fmt.Appendf(nil, "%d-%d", n, rng.IntN(1e9))}
	if rng.IntN(3) == 0 {
		c.ID = nil
	}
	switch rng.IntN(8) {
	case 0, 1: // events that are gathered, some without a time
		var b []byte
		for range n % 300 {
			b = append(msgpack.AppendString(append(b, 0x93), tag), [...]byte{0, 5}[rng.IntN(2)])
			b = append(b, 0x81, 0xa1, 'k')
			b = msgpack.AppendString(b, string(make([]byte, rng.IntN(100))))
		}
		return b
	case 2: // one event with an id, perhaps large
		b := append(msgpack.AppendString([]byte{0x94}, tag), [...]byte{0, 5}[rng.IntN(2)], 0x81, 0xa1, 'k')
		b = msgpack.AppendBin(b, make([]byte, rng.IntN(1<<rng.IntN(21))))
		b = msgpack.AppendString(append(b, 0x81), "chunk")
		return msgpack.AppendString(b, fmt.Sprintf("1-%d", rng.IntN(1e9)))
	case 3: // forward mode
		b := msgpack.AppendArrayHeader(msgpack.AppendString([]byte{0x93}, tag), n)
		return c.appendTail(append(b, entries(n)...), "")
	case 4: // without times
		c.Entries = bytes.Repeat(unhex("92 00 81 a1 6d a1 62"), n)
	case 5: // with metadata, nil and invalid ones
		c.Entries = append(bytes.Repeat(unhex("92 92 05 80 81 a1 6d a1 62"), n), unhex("92 05 c0 92 05 05")...)
	case 6: // much of the same
		c.Entries = bytes.Repeat(entries(1), n)
	case 7:
		c.Entries = entries(n)
	}
	return wireOf(&c, [...]string{"", "gzip", "zstd"}[rng.IntN(3)])
}

func chaosJSON(rng *rand.Rand) []byte {
	b, _ := json.Marshal([]any{
		"j", rng.IntN(2),
		map[string]any{"k": string(bytes.Repeat([]byte("x"), rng.IntN(1<<rng.IntN(20))))},
	})
	if rng.IntN(2) == 0 {
		b = fmt.Appendf(b[:len(b)-1], `,{"chunk":"1-%d"}]`, rng.IntN(1e9))
	}
	return b
}

// Whatever comes, and however it ends: chunks stay what they are while they are lent, and nothing
// is left of the memory.
func TestChaos(t *testing.T) {
	for _, kind := range []string{"each", "group", "async"} {
		for seed := range uint64(4) {
			t.Run(fmt.Sprint(kind, seed), func(t *testing.T) {
				h := &chaos{rng: rand.New(rand.NewPCG(seed, 1))}
				s := &Server{
					Memory: [...]int64{256 << 10, 1 << 20, 4 << 20, 64 << 20}[seed], MaxChunk: 4 << 20,
					MaxInFlight: 8, StallTimeout: 200 * time.Millisecond,
				}
				switch kind {
				case "each":
					s.Handler = chaosEach{h}
				case "group":
					s.Handler = chaosGroup{chaosEach{h}}
				case "async":
					s.Handler = chaosAsync{chaosEach{h}}
				}
				s.RefuseInvalid = seed == 2
				if seed%2 == 1 {
					s.Endpoint = Endpoint{TagPrefix: "p", AddressKey: "k"}
				}
				l, err := net.Listen("tcp", "127.0.0.1:0")
				if err != nil {
					t.Fatal(err)
				}
				served := make(chan error, 1)
				go func() { served <- s.Serve(l) }()
				var all sync.WaitGroup
				for i := range 8 {
					rng := rand.New(rand.NewPCG(seed, uint64(i+10)))
					all.Go(func() { chaosPeer(rng, l.Addr().String()) })
				}
				if seed == 3 { // in the middle of it all
					time.AfterFunc(100*time.Millisecond, func() { _ = s.Close() })
				}
				all.Wait()
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				if err := s.Shutdown(ctx); err != nil && seed != 3 {
					t.Error(err)
				}
				h.later.Wait()
				if st := s.Stats(); st.Memory != 0 || st.Connections != 0 {
					t.Errorf("%d bytes, %d connections are left", st.Memory, st.Connections)
				}
				if err := s.mem.AtRest(); err != nil {
					t.Error(err)
				}
				if err := s.Close(); err != nil {
					t.Error(err)
				}
				<-served
				for _, w := range h.wrong {
					t.Error(w)
				}
			})
		}
	}
}

// chaosPeer connects several times and ends each connection in its own way.
func chaosPeer(rng *rand.Rand, addr string) {
	for range 4 {
		nc, err := net.Dial("tcp", addr)
		if err != nil {
			return
		}
		_ = nc.SetDeadline(time.Now().Add(20 * time.Second))
		read := make(chan struct{})
		reads := rng.IntN(5) > 0
		go func() {
			defer close(read)
			buf := make([]byte, 1<<12)
			for reads {
				if _, err := nc.Read(buf); err != nil {
					return
				}
			}
		}()
		isJSON := rng.IntN(6) == 0
		whole := true
		for i := rng.IntN(12); i > 0 && whole && err == nil; i-- {
			var b []byte
			for range 1 + rng.IntN(6) {
				if isJSON {
					b = append(b, chaosJSON(rng)...)
				} else {
					b = append(b, chaosMessage(rng)...)
				}
			}
			if rng.IntN(30) == 0 {
				b = append(b, 0xc1)
			}
			if rng.IntN(12) == 0 {
				b, whole = b[:rng.IntN(len(b)+1)], false
			}
			for len(b) > 0 && err == nil {
				n := min(len(b), 1+rng.IntN(1<<(4+rng.IntN(17))))
				_, err = nc.Write(b[:n])
				b = b[n:]
			}
		}
		switch rng.IntN(3) {
		case 0:
			_ = nc.(*net.TCPConn).SetLinger(0)
		case 1:
			_ = nc.(*net.TCPConn).CloseWrite()
			if reads {
				<-read
			}
		}
		_ = nc.Close()
		<-read
	}
}
