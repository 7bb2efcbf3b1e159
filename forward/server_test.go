// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"
)

// TestRule27RoundTrip sends chunks of a Client to a Server over sockets.
func TestRule27RoundTrip(t *testing.T) {
	for _, compress := range []string{"", "gzip", "zstd"} {
		t.Run(compress, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			got := make(chan string, 100)
			s := &Server{Handler: HandlerFunc(func(_ context.Context, c *Chunk) error {
				got <- fmt.Sprintf("%s %s %d %v %s", c.Tag, c.Entries, c.Events, c.Own, c.Peer)
				return nil
			})}
			served := make(chan error)
			go func() { served <- s.Serve(l) }()
			c := &Client{Address: l.Addr().String(), Compress: compress}
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			entry := AppendEventTime([]byte{0x92}, 1, 2)
			entry = append(entry, 0x81, 0xa1, 'm', 0xa1, 'x')
			for range 10 {
				if err := c.Send(ctx, &Chunk{Tag: "a.b", Entries: entry, Events: 1}); err != nil {
					t.Fatal(err)
				}
				if g, want := <-got, fmt.Sprintf("a.b %s 1 true 127.0.0.1", entry); g != want {
					t.Errorf("got %q, want %q", g, want)
				}
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
			if err := s.Shutdown(ctx); err != nil {
				t.Error(err)
			}
			if err := <-served; err != ErrServerClosed {
				t.Error(err)
			}
			if st := s.Stats(); st.Memory != 0 || st.Events != 10 || st.Acks != 10 || st.Connections != 0 {
				t.Errorf("%+v", st)
			}
		})
	}
}
