// SPDX-License-Identifier: Apache-2.0

package leak

import (
	"context"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/spillwaylog/spillway/collector"
	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/msgpack"
)

// chunk has one event.
func chunk() *forward.Chunk {
	b := forward.AppendEventTime(msgpack.AppendArrayHeader(nil, 2), 1700000000, 1)
	b = msgpack.AppendString(msgpack.AppendString(msgpack.AppendMapHeader(b, 1), "key"), "value")
	return &forward.Chunk{Tag: "a", ID: forward.NewID(), UniqueID: true, Entries: b, Events: 1}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// noneLeft is goleak.VerifyNone with more patience than its half a second: a Close that is bounded
// leaves what is held up on a busy machine, and that ends later.
func noneLeft(t *testing.T, options ...goleak.Option) {
	t.Helper()
	var err error
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		if err = goleak.Find(options...); err == nil {
			return
		}
	}
	t.Error(err)
}

// TestNoGoroutineLeft runs a collector and a client in this process and wants every goroutine of
// theirs to end.
func TestNoGoroutineLeft(t *testing.T) {
	defer noneLeft(t, goleak.IgnoreCurrent())
	dir, err := os.MkdirTemp("", "sw") // the path of a socket must be short
	must(t, err)
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "s")
	c, err := collector.Open(&collector.Config{
		Inputs:  collector.Ends("forward+unix://"+path, "forward://127.0.0.1:0"),
		Outputs: collector.Ends("file://"+filepath.Join(t.TempDir(), "{tag}.jsonl"), "discard:"),
		Dir:     filepath.Join(t.TempDir(), "data"),
		Log:     slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- c.Run(ctx) }()

	client := &forward.Client{Network: "unix", Address: path}
	must(t, client.Send(ctx, chunk()))
	idle, err := net.Dial("unix", path)
	must(t, err)
	defer idle.Close()
	must(t, client.Close())
	cancel()
	must(t, <-ended)
}

// TestNoGoroutineLeftOfServer closes a server under an idle connection and one in the middle of a
// message.
func TestNoGoroutineLeftOfServer(t *testing.T) {
	defer noneLeft(t, goleak.IgnoreCurrent())
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	got := make(chan struct{}, 1)
	s := &forward.Server{Handler: forward.HandlerFunc(func(context.Context, *forward.Chunk) error {
		got <- struct{}{}
		return nil
	})}
	ended := make(chan error)
	go func() { ended <- s.Serve(l) }()
	c := chunk()
	message := c.AppendTail(append(c.AppendHead(nil), c.Entries...))
	for _, b := range [][]byte{nil, message[:20], message} {
		conn, err := net.Dial("tcp", l.Addr().String())
		must(t, err)
		defer conn.Close()
		_, err = conn.Write(b)
		must(t, err)
	}
	<-got
	must(t, s.Close())
	if err := <-ended; err != forward.ErrServerClosed { //nolint:errorlint // Serve documents this very value
		t.Errorf("Serve: %v", err)
	}
}
