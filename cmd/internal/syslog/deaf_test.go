// SPDX-License-Identifier: Apache-2.0

package syslog

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"testing"
	"testing/synctest"

	"github.com/spillwaylog/spillway/collector"
	"github.com/spillwaylog/spillway/internal/testcert"
)

// pipes is a listener whose connections have no room for what is not read.
type pipes struct {
	net.Listener
	conns  chan net.Conn
	closed context.Context
	close  context.CancelFunc
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed.Done():
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.close()
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

// deaf is the end of a connection that never reads.
type deaf struct {
	net.Conn
	until context.Context
}

func (d deaf) Read([]byte) (int, error) {
	<-d.until.Done()
	return 0, net.ErrClosed
}

// TestDeaf: a sender of TLS that does not read what it is to answer gives way to another one, and
// the input ends. Package tls writes in the middle of a read: in the handshake, and when it is
// asked for other keys.
func TestDeaf(t *testing.T) {
	ca := testcert.New(t)
	open, err := plan("syslog+tls://127.0.0.1:0?max_connections=1&cert=" + ca.Server.Cert + "&key=" + ca.Server.Key)
	must(t, err)
	opened, err := open(&collector.InputEnv{Name: "in", Log: slog.New(slog.DiscardHandler)})
	must(t, err)
	in := opened.(*input)
	must(t, in.Close())
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		p := &pipes{conns: make(chan net.Conn)}
		p.closed, p.close = context.WithCancel(context.Background())
		in.listener = tls.NewListener(p, in.security.TLS())
		ended := make(chan error, 1)
		go func() { ended <- in.Run(ctx, &sink{}) }()
		for range 4 {
			near, far := net.Pipe()
			p.conns <- far
			go func() {
				// It fails.
				_ = tls.Client(deaf{near, ctx}, &tls.Config{RootCAs: ca.Pool, ServerName: "localhost"}).Handshake()
				_ = near.Close()
			}()
			synctest.Wait()
			if n := in.Stats().Connections; n != 1 {
				t.Errorf("%d connections", n)
				break
			}
		}
		over := make(chan struct{})
		go func() { defer close(over); <-ended }()
		in.end() // and no sender goes away
		synctest.Wait()
		if n := in.Stats().Connections; n != 0 {
			t.Errorf("%d connections when it has ended", n)
		}
		cancel()
		<-over
	})
}
