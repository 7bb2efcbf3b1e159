// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"errors"
	"net"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// broke is a listener that has errors to give before connections.
type broke struct {
	*pipes
	errs []error
}

func (b *broke) Accept() (net.Conn, error) {
	if len(b.errs) == 0 {
		return b.pipes.Accept()
	}
	err := b.errs[0]
	b.errs = b.errs[1:]
	return nil, &net.OpError{Op: "accept", Net: "tcp", Addr: b.Addr(), Err: err}
}

// A system that is short of something for a while does not end a server, and does not leave it
// silent.
func TestAcceptErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &broke{pipes: newPipes()}
		for _, e := range []syscall.Errno{
			syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM,
			syscall.EPERM, syscall.EPROTO, syscall.EHOSTUNREACH,
		} {
			l.errs = append(l.errs, os.NewSyscallError("accept4", e))
		}
		want := len(l.errs)
		s := &Server{Handler: nothing{}}
		var told []PeerError
		s.PeerError = func(tr PeerError) { told = append(told, tr) }
		served := make(chan error, 1)
		go func() { served <- s.Serve(l) }()
		<-time.After(time.Minute)
		synctest.Wait()
		select {
		case err := <-served:
			t.Fatal(err)
		default:
		}
		if n := s.EndpointStats(&s.Endpoint).PeerErrors[PeerNotAccepted]; len(told) != want || n != uint64(want) {
			t.Fatalf("%d told, %d counted", len(told), n)
		}
		if got := told[0].Error(); got != "not accepted from pipe: accept tcp pipe: accept4: "+syscall.EMFILE.Error()+
			" (kept)" {
			t.Error(got)
		}
		c := l.dial()
		write(t, c, withID('a'))
		if got := readAll(t, c, len(ackOf("a"))); string(got) != string(ackOf("a")) {
			t.Errorf("%x", got)
		}
		_ = c.Close()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if err := <-served; !errors.Is(err, ErrServerClosed) {
			t.Error(err)
		}
	})
}

// What does not pass is returned.
func TestAcceptFails(t *testing.T) {
	l := &broke{newPipes(), []error{os.NewSyscallError("accept4", syscall.EINVAL)}}
	if err := (&Server{Handler: nothing{}}).Serve(l); !errors.Is(err, syscall.EINVAL) {
		t.Error(err)
	}
}
