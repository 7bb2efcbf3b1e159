// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"bytes"
	"io"
	"testing"
	"testing/synctest"
	"time"
)

// TestPatience: a sender that goes on, however slowly, is not cut though others wait for what it
// holds. One that stops is, and so is one that brings a byte now and then. The time is that of the
// bubble.
func TestPatience(t *testing.T) {
	for _, little := range []int{0, 1} {
		s := &Server{Handler: nothing{}, Memory: 200 << 10}
		bubble(t, s, func(t *testing.T, p *pipes, peerErrors func() string) {
			big := messageOf(200<<10, "x")
			steady, waits := p.peer(), p.peer()
			write(t, steady, big[:140<<10]) // it overdraws, for its buffer is larger than all
			synctest.Wait()
			rest := big[140<<10:]
			written := make(chan error, 1)
			go func() {
				_, err := waits.Write(big)
				written <- err
			}()
			for range 60 {
				<-time.After(900 * time.Millisecond)
				write(t, steady, rest[:1000])
				rest = rest[1000:]
				synctest.Wait()
			}
			if peerErrors() != "" || steady.closed() || s.mem.Waiting() == 0 {
				t.Fatalf("closed %v, %d wait: %s", steady.closed(), s.mem.Waiting(), peerErrors())
			}
			for i := 0; i < 100 && !steady.closed(); i++ {
				<-time.After(DefaultStallTimeout / 100)
				if little > 0 {
					_, _ = steady.Write(rest[:little]) // it may be closed
					rest = rest[little:]
				}
				synctest.Wait()
			}
			if err := <-written; err != nil {
				t.Error(err)
			}
			synctest.Wait()
			if got, _ := waits.received(); !bytes.Equal(got, ackOf("x")) ||
				peerErrors() != "slow sender: connection closed" {
				t.Errorf("%d bytes now and then: acks %x, closed %v, %s", little, got, steady.closed(), peerErrors())
			}
			_, _ = steady.Close(), waits.Close()
		})
	}
}

// TestBytesBeforeLogin: what unknown clients send before a login counts, and holds up those with a
// login for no longer than half-sent messages do.
func TestBytesBeforeLogin(t *testing.T) {
	s := &Server{
		Handler: nothing{}, Memory: 128 << 10, HandshakeTimeout: 24 * time.Hour,
		Endpoint: Endpoint{Security: &Security{SharedKey: "key"}},
	}
	bubble(t, s, func(t *testing.T, p *pipes, peerErrors func() string) {
		half := letterOf("PING", "host", make([]byte, 7<<10))[:6<<10]
		var strangers []*peer
		for range 64 {
			q := p.peer()
			strangers = append(strangers, q)
			q.helo(t)
			write(t, q, half)
		}
		synctest.Wait()
		if held := s.Stats().Memory; held < 64<<10 || held > s.Memory+16<<10 { // one may overdraw
			t.Errorf("%d bytes are held", held)
		}
		good := p.peer()
		good.logIn(t, who{host: "a", key: "key"}, withID('a')...)
		for range 600 { // seconds
			if got, _ := good.received(); bytes.HasSuffix(got, ackOf("a")) {
				break
			}
			<-time.After(time.Second)
			synctest.Wait()
		}
		if got, _ := good.received(); !bytes.HasSuffix(got, ackOf("a")) || good.closed() {
			t.Errorf("received %q, closed %t: %s", got, good.closed(), peerErrors())
		}
		for _, q := range strangers {
			_ = q.Close()
		}
		_ = good.Close()
	})
}

// TestPeerErrorDuringLogin: whatever reports a PeerError of a connection that logs in, as the
// watcher does, does not touch what its reader is writing.
func TestPeerErrorDuringLogin(t *testing.T) {
	var told []PeerError
	s := &Server{
		Handler: nothing{}, HandshakeTimeout: time.Hour, Endpoint: Endpoint{Security: &Security{SharedKey: "key"}},
		PeerError: func(tr PeerError) { told = append(told, tr) },
	}
	bubble(t, s, func(t *testing.T, p *pipes, _ func() string) {
		q := p.peer()
		tell := func() (known, own *Sender) {
			s.mu.Lock()
			defer s.mu.Unlock()
			for c := range s.conns {
				c.report(PeerSlowSender, ActionClose, "", 0, io.EOF)
				return told[len(told)-1].Sender, c.sender
			}
			t.Fatal("there is no connection")
			return nil, nil
		}
		w := who{host: "a", key: "key"}
		w.nonce, w.auth, _ = q.helo(t)
		if known, own := tell(); known == own || known.Conn != own.Conn || known.Peer != own.Peer ||
			known.Addr != own.Addr || known.Endpoint != own.Endpoint {
			t.Errorf("%+v of %+v", known, own)
		}
		write(t, q, w.ping())
		synctest.Wait()
		if known, own := tell(); known != own || known.Host != "a" {
			t.Errorf("%+v of %+v", known, own)
		}
		_ = q.Close()
	})
}
