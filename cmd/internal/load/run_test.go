// SPDX-License-Identifier: Apache-2.0

package load

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/msgpack"
)

// TestRun counts what arrives: each event once, and as many as the result says.
func TestRun(t *testing.T) {
	for _, o := range []Options{
		{Mode: ModeMessage, Rate: 20_000},
		{Mode: ModeMessage, Rate: 2_000, Ack: true, Depth: 100},
		{Mode: ModeForward, Rate: 20_000, Batch: 10, Ack: true},
		{Mode: ModePacked, Rate: 50_000, Batch: 100},
		{Mode: ModePacked, Rate: 50_000, Batch: 100, Ack: true, Compress: "gzip", Fresh: true},
		{Mode: ModePacked, Rate: 50_000, Batch: 100, Ack: true, Compress: "zstd"},
		{Mode: ModePacked, Batch: 100, Ack: true, Depth: 3},
		{Mode: ModeMessage},
	} {
		t.Run(fmt.Sprintf("%s %s ack=%t rate=%v", o.Mode, o.Compress, o.Ack, o.Rate), func(t *testing.T) {
			var srv *oracle
			var r Result
			for tries := 1; ; tries++ {
				srv = newOracle(t, nil)
				o.Dial, o.Connections, o.Processes = srv.dial, 3, []int{os.Getpid()}
				o.Warmup, o.Duration, o.Drain = 50*time.Millisecond, 200*time.Millisecond, time.Minute
				var err error
				if r, err = Run(t.Context(), o); err != nil {
					t.Fatal(err)
				}
				// A machine that is busy elsewhere for as long as is measured measures nothing.
				if r.Sent > 0 && r.Offered > 0 && r.Taken > 0 && (!o.Ack || r.Acked > 0 && r.Latency.Count > 0) {
					break
				}
				if tries == 20 {
					t.Fatalf("%+v", r)
				}
			}
			if r.Total.Events == 0 || r.Total.Events != r.Total.Messages*int64(r.Batch) {
				t.Errorf("%+v", r)
			}
			if !r.Drained || r.Unacked != 0 || r.Error != "" {
				t.Errorf("%+v", r)
			}
			ids := int64(-1)
			if o.Ack {
				ids = r.Total.Messages
				if r.Total.Acked != ids {
					t.Errorf("%+v, %+v", r, r.Latency)
				}
			} else if r.Latency != nil || r.Acked != 0 {
				t.Errorf("%+v", r)
			}
			srv.check(t, r.Total.Events, ids, o.Compress == "" || o.Fresh)
		})
	}
}

// A pipe is a server at the other end of net.Pipe, for bubbles.
func pipe(t *testing.T, serve func(net.Conn)) func(context.Context) (net.Conn, error) {
	return func(context.Context) (net.Conn, error) {
		near, far := net.Pipe()
		done := make(chan struct{})
		go func() {
			defer close(done)
			serve(far)
			far.Close()
		}()
		t.Cleanup(func() { <-done })
		return near, nil
	}
}

// eachMessage calls do with the chunk of every message that comes.
func eachMessage(nc net.Conn, do func(id []byte) error) error {
	buf := make([]byte, 64<<10)
	have := 0
	for {
		n, err := nc.Read(buf[have:])
		if err != nil {
			return err
		}
		have += n
		for {
			var c forward.Chunk
			n, err := msgpack.Skip(buf[:have])
			if err != nil { // it is not complete
				break
			}
			if err := c.Parse(buf[:n]); err != nil {
				return err
			}
			if err := do(c.ID); err != nil {
				return err
			}
			have = copy(buf, buf[n:have])
		}
	}
}

// TestLatencyHasTheWait is about coordinated omission: a server that takes 50 ms for each message,
// one at a time, is offered 100 a second. Half of them could not even be sent; those that were
// waited longer and longer, and that is what has to come out, not 50 ms.
func TestLatencyHasTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dial := pipe(t, func(nc net.Conn) {
			_ = eachMessage(nc, func(id []byte) error {
				time.Sleep(50 * time.Millisecond) //nolint:forbidigo // the fake server's slowness, in a bubble
				_, err := nc.Write(append([]byte("\x81\xa3ack\xb8"), id...))
				return err
			})
		})
		r, err := Run(t.Context(), Options{
			Dial: dial, Mode: ModePacked, Batch: 1, Rate: 100, Ack: true, Depth: 1,
			Duration: 10 * time.Second,
		})
		if err != nil {
			t.Fatal(err)
		}
		if r.Total.Messages != 200 || r.Backlog < 795 || r.Backlog > 800 || r.KeptUp || math.Abs(r.Offered-100) > 1 ||
			math.Abs(r.Acked-20) > 1 {
			t.Errorf("%+v", r)
		}
		// Message n is due at 10·(n+1) ms and acked at 10+50·(n+1) ms.
		for _, q := range []struct{ got, want float64 }{
			{r.Latency.P50, 4.0e6},
			{r.Latency.P90, 7.2e6},
			{r.Latency.Max, 8.0e6},
		} {
			if q.got < q.want*.98 || q.got > q.want*1.05 {
				t.Errorf("latencies %+v, want about %v where it is %v", r.Latency, q.want, q.got)
			}
		}
	})
}

// TestPacedEvenly sees what a server sees of a rate, and what is told meanwhile.
func TestPacedEvenly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		perSecond := map[int64]int{}
		start := time.Now()
		dial := pipe(t, func(nc net.Conn) {
			_ = eachMessage(nc, func(id []byte) error {
				perSecond[int64((time.Since(start)-lead-1)/time.Second)]++
				_, err := nc.Write(append([]byte("\x81\xa3ack\xb8"), id...))
				return err
			})
		})
		var told []Progress
		r, err := Run(t.Context(), Options{
			Dial: dial, Mode: ModePacked, Batch: 10, Rate: 12_340, Ack: true, Depth: 50, Warmup: 2 * time.Second,
			Duration: 5 * time.Second,
			Progress: func(p Progress) { told = append(told, p) },
		})
		if err != nil {
			t.Fatal(err)
		}
		for second := range int64(7) {
			if n := perSecond[second]; n < 1233 || n > 1235 {
				t.Errorf("%d messages in second %d", n, second)
			}
		}
		if !r.KeptUp || r.Backlog != 0 || r.Latency.Max > 1 || r.Latency.Count < 6160 || r.Latency.Count > 6180 ||
			r.Seconds != 5 {
			t.Errorf("%+v, %+v", r, r.Latency)
		}
		if len(told) < 6 || told[0].Warm || !told[5].Warm || math.Abs(told[3].Sent-12_340) > 300 ||
			!strings.Contains(told[3].String(), "12,340/s offered") {
			t.Errorf("%v", told)
		}
	})
}

// TestSlowHandler has a server that stores nothing.
func TestSlowHandler(t *testing.T) {
	srv := newOracle(t, func(srv *oracle) {
		srv.Handler = forward.HandlerFunc(func(ctx context.Context, _ *forward.Chunk) error {
			<-ctx.Done()
			return ctx.Err()
		})
	})
	o := Options{
		Dial: srv.dial, Mode: ModePacked, Batch: 10, Rate: 10_000, Ack: true, Depth: 2,
		Duration: 100 * time.Millisecond, Drain: 100 * time.Millisecond,
	}
	r, err := Run(t.Context(), o)
	if !errors.Is(err, ErrFailed) || !errors.Is(err, errUnacked) || !strings.Contains(err.Error(), srv.addr.String()) {
		t.Errorf("with acks: %v", err)
	}
	if r.KeptUp || r.Unacked != 2 || r.Backlog < 900 || r.Total.Messages != 2 || r.Error == "" {
		t.Errorf("with acks: %+v", r)
	}
	o.Ack, o.Rate, o.Batch, o.Size = false, 0, 10, 100_000
	o.Duration = 5 * time.Second // in which a busy machine, too, writes more than any socket takes
	r, err = Run(t.Context(), o)
	if !errors.Is(err, ErrFailed) || !errors.Is(err, errStalled) {
		t.Errorf("without acks: %v", err)
	}
	if r.Drained || r.Total.Messages == 0 {
		t.Errorf("without acks: %+v", r)
	}
}

// TestServerDies has a server that ends in the middle.
func TestServerDies(t *testing.T) {
	for _, ack := range []bool{true, false} {
		var chunks atomic.Int64
		srv := newOracle(t, func(srv *oracle) {
			srv.Handler = forward.HandlerFunc(func(context.Context, *forward.Chunk) error {
				if chunks.Add(1) == 20 {
					go srv.Close()
				}
				return nil
			})
		})
		r, err := Run(t.Context(), Options{
			Dial: srv.dial, Connections: 2, Mode: ModePacked, Batch: 10, Rate: 100_000, Ack: ack, Duration: time.Hour,
			Drain: time.Minute,
		})
		if !errors.Is(err, ErrFailed) || !strings.Contains(err.Error(), srv.addr.String()) {
			t.Errorf("ack=%t: %v", ack, err)
		}
		if r.Total.Messages == 0 || r.KeptUp || r.Error == "" || r.Seconds > 3600 || ack && r.Total.Acked == 0 {
			t.Errorf("ack=%t: %+v", ack, r)
		}
	}
}

func TestHostileAcks(t *testing.T) {
	for name, tt := range map[string]struct {
		answer string
		want   error
	}{
		"garbage":      {"\xc1\xc1\xc1", errNoAck},
		"HTTP":         {"HTTP/1.1 400 Bad Request\r\n", errNoAck},
		"an empty map": {"\x80", errNoAck},
		"another id":   {"\x81\xa3ack\xb8" + anID, errStrange},
		"short id":     {"\x81\xa3ack\xa1x", errStrange},
		"long id":      {"\x81\xa3ack\xda\x01\x00" + strings.Repeat("x", 256), errStrange},
		"no end":       {"\x81\xa3ack\xdb\x7f\xff\xff\xff", errNoAck},
		"flood":        {strings.Repeat("\x81\xa3ack\xb8"+anID, 10_000), errStrange},
		"silence":      {"", ErrFailed},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dial := pipe(t, func(nc net.Conn) {
					_, _ = nc.Read(make([]byte, 10))
					go func() { _, _ = io.Copy(io.Discard, nc) }()
					_, _ = io.WriteString(nc, tt.answer)
				})
				r, err := Run(t.Context(), Options{Dial: dial, Ack: true, Rate: 1000, Duration: time.Minute})
				if !errors.Is(err, tt.want) || !errors.Is(err, ErrFailed) || r.KeptUp ||
					r.Unacked != r.Total.Messages || r.Depth != DefaultDepth {
					t.Errorf("%v, want %v; %+v", err, tt.want, r)
				}
			})
		})
	}
}

// TestFailsAtOnce: what was sent without an ack is told also of a run that failed before anything
// was measured.
func TestFailsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dial := pipe(t, func(nc net.Conn) {
			sent := 0
			_ = eachMessage(nc, func([]byte) error {
				if sent++; sent == 3 {
					_, _ = io.WriteString(nc, "\xc1")
					return io.EOF
				}
				return nil
			})
		})
		r, err := Run(t.Context(), Options{Dial: dial, Ack: true, Depth: 3, Batch: 1, Warmup: time.Second})
		if !errors.Is(err, errNoAck) || r.Total.Messages != 3 || r.Unacked != 3 || r.Depth != 3 || r.KeptUp {
			t.Errorf("%v, %+v", err, r)
		}
	})
}

func TestRunCanceled(t *testing.T) {
	srv := newOracle(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	r, err := Run(ctx, Options{
		Dial: srv.dial, Ack: true, Rate: 1000, Batch: 1, Duration: time.Hour, Progress: func(Progress) { cancel() },
	})
	if !errors.Is(err, context.Canceled) || r.Total.Acked == 0 || r.Seconds == 0 {
		t.Errorf("%v: %+v", err, r)
	}
}

func TestHandshakes(t *testing.T) {
	srv := newOracle(t, func(srv *oracle) {
		srv.Endpoint.Security = &forward.Security{SharedKey: "right", Users: map[string]string{"sender": "pw"}}
	})
	dialer := func(key, password string) *Dialer {
		return &Dialer{Network: "tcp", Address: srv.addr.String(), Login: func() (*forward.Login, error) {
			return &forward.Login{SharedKey: key, Username: "sender", Password: password}, nil
		}}
	}
	o := Options{
		Dial: dialer("right", "pw").Dial, Rate: 10_000, Batch: 10, Ack: true, Duration: 100 * time.Millisecond,
		Connections: 2,
	}
	r, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if r.Total.Events == 0 {
		t.Error("nothing was sent")
	}
	srv.check(t, r.Total.Events, r.Total.Messages, true)
	for _, d := range []*Dialer{dialer("wrong", "pw"), dialer("right", "wrong")} {
		o.Dial = d.Dial
		r, err := Run(t.Context(), o)
		if !errors.Is(err, forward.ErrDenied) || r.Total.Messages != 0 || strings.Contains(err.Error(), "right") {
			t.Errorf("%v: %+v", err, r)
		}
	}
	plain := &Dialer{
		Network: "tcp", Address: srv.addr.String(),
		TLS: func() (*tls.Config, error) { return &tls.Config{MinVersion: tls.VersionTLS12}, nil },
	}
	o.Dial = plain.Dial
	if _, err := Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), "TLS") {
		t.Errorf("TLS to a server that has none: %v", err)
	}
}

func TestNoKeepalive(t *testing.T) {
	srv := newOracle(t, func(srv *oracle) {
		srv.Endpoint.Security = &forward.Security{SharedKey: "right", DenyKeepalive: true}
	})
	d := &Dialer{
		Network: "tcp", Address: srv.addr.String(),
		Login: func() (*forward.Login, error) { return &forward.Login{SharedKey: "right"}, nil },
	}
	if _, err := Run(t.Context(), Options{Dial: d.Dial}); !errors.Is(err, ErrNoKeepalive) {
		t.Error(err)
	}
}

func TestOptions(t *testing.T) {
	dial := (&Dialer{}).Dial
	for want, o := range map[string]Options{
		"dial with":        {},
		"mode message has": {Dial: dial, Mode: ModeMessage, Batch: 2},
		"no mode":          {Dial: dial, Mode: "json"},
		"no compression":   {Dial: dial, Compress: "lz4"},
		"cannot be":        {Dial: dial, Mode: ModeForward, Compress: "gzip"},
		"a rate":           {Dial: dial, Rate: math.NaN()},
		"a rate of -1":     {Dial: dial, Rate: -1},
		"connections":      {Dial: dial, Connections: -1},
		"a depth":          {Dial: dial, Depth: 1 << 20},
		"-3 events":        {Dial: dial, Batch: -3},
		"at least 40":      {Dial: dial, Size: 39},
		"bytes is larger":  {Dial: dial, Batch: 1_000_000, Size: 1000},
		"positive":         {Dial: dial, Warmup: -1},
		"no process":       {Dial: dial, Processes: []int{0x7fffffff}},
		"not a map":        {Dial: dial, Records: [][]byte{{0x90}}},
		"a record of 2":    {Dial: dial, Records: [][]byte{{0x80, 0x80}}},
		"larger than 67108": {
			Dial: dial, Batch: 5_000,
			Records: [][]byte{append([]byte{0x81, 0xa1, 'a', 0xda, 0xff, 0xff}, make([]byte, 0xffff)...), {0x80}},
		},
	} {
		if _, err := Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", o, err, want)
		}
	}
}
