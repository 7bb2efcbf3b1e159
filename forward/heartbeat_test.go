// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"bytes"
	"errors"
	"net"
	"testing"
	"time"
)

func TestRule41Heartbeat(t *testing.T) {
	pc, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{}
	served := make(chan error)
	go func() { served <- s.ServeHeartbeat(pc) }()
	c, err := net.Dial("udp", pc.LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 10)
	for _, size := range []int{1, 0, 128} {
		write(t, c, make([]byte, 129)) // not answered: the answer that is read is the next one's
		write(t, c, make([]byte, size))
		n, err := c.Read(buf)
		if err != nil || !bytes.Equal(buf[:n], []byte{0}) {
			t.Errorf("%d bytes: %x %v", size, buf[:n], err)
		}
	}
	if err := s.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-served; !errors.Is(err, ErrServerClosed) {
		t.Error(err)
	}
	if _, err := c.Write([]byte{0}); err == nil {
		if n, err := c.Read(buf); err == nil {
			t.Errorf("%d more answers", n)
		}
	}
}
