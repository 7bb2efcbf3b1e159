// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"bytes"
	"errors"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
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
	if err := c.SetDeadline(time.Now().Add(4 * time.Minute)); err != nil {
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

// datagrams is a socket that has what a test says.
type datagrams struct {
	net.PacketConn // nil: nothing else is called
	in             chan any
	answered       []string
}

func (d *datagrams) ReadFrom(p []byte) (int, net.Addr, error) {
	switch v := (<-d.in).(type) {
	case *net.UDPAddr:
		return copy(p, []byte{0}), v, nil
	case int: // so long
		if v > len(p) {
			return 0, nil, syscall.Errno(10040) // WSAEMSGSIZE
		}
		return v, &net.UDPAddr{IP: net.IPv4(192, 0, 2, 9), Port: 50000}, nil
	case error:
		return 0, nil, v
	}
	return 0, nil, net.ErrClosed
}

func (d *datagrams) WriteTo(_ []byte, a net.Addr) (int, error) {
	d.answered = append(d.answered, a.String())
	return 1, nil
}

func (d *datagrams) LocalAddr() net.Addr { return &net.UDPAddr{Port: 24224} }

func (d *datagrams) Close() error { return nil }

// A server that answered what comes from another one, whose address anybody can write on a
// datagram, would keep both of them busy for ever.
func TestRule41HeartbeatNoLoop(t *testing.T) {
	d := &datagrams{in: make(chan any)}
	s := &Server{}
	served := make(chan error)
	go func() { served <- s.ServeHeartbeat(d) }()
	for _, port := range []int{24224, 7, 1023, 1024, 24225, 65535} {
		d.in <- &net.UDPAddr{IP: net.IPv4(192, 0, 2, 1), Port: port}
	}
	close(d.in)
	if err := <-served; !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
	if got := strings.Join(d.answered, " "); got != "192.0.2.1:1024 192.0.2.1:24225 192.0.2.1:65535" {
		t.Error(got)
	}
}

// No number of datagrams that are too long or of answers that do not arrive ends the service, which
// would end the server.
func TestHeartbeatErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &datagrams{in: make(chan any)}
		s := &Server{}
		served := make(chan error)
		go func() { served <- s.ServeHeartbeat(d) }()
		for _, bad := range []any{
			129, 60000, wsaConnReset, &net.OpError{Op: "read", Err: os.NewSyscallError("wsarecvfrom", wsaNetReset)},
			os.NewSyscallError("recvfrom", syscall.ECONNREFUSED), os.NewSyscallError("recvfrom", syscall.ENOBUFS),
		} {
			for range 500 {
				select {
				case d.in <- bad:
				case err := <-served:
					t.Fatalf("%v ended it: %v", bad, err)
				}
			}
		}
		d.in <- &net.UDPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 2000}
		close(d.in)
		if err := <-served; !errors.Is(err, net.ErrClosed) || len(d.answered) != 1 {
			t.Errorf("%v, %d answers", err, len(d.answered))
		}
	})
}
