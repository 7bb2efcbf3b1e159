// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spillwaylog/spillway/forward/internal/budget"
	"github.com/spillwaylog/spillway/forward/internal/wire"
)

// How this file is organised. Before its first message a connection goes through its admission: TLS
// and the Forward handshake, as its Endpoint says, under one deadline. Meanwhile it holds no
// buffer, only what the letters take, and there is nothing to lose: whatever wants it to end cuts
// it.

// admission is a login in progress.
type admission struct {
	*remote
	letters int   // bytes that have come
	guest   int64 // of the budget, for these
	once    bool  // keepalive is denied
}

// run does what has to be done before the first message, and returns what came behind it. Its
// error is told by end.
func (c *admission) run() (rest []byte, err error) {
	limit, rechecks := c.s.loginTimeout, c.s.rechecks.Load()
	if err := c.sock.SetDeadline(time.Now().Add(limit)); err != nil {
		return nil, err
	}
	if c.cut.Load() || c.s.down.Load() { // an interrupt that came before is undone
		return nil, errGone
	}
	if c.tls != nil {
		c.under.login = c.loginRead
		err = c.shake()
	}
	if err == nil && c.ep.guarded() {
		rest, err = c.greet()
	}
	if c.under != nil {
		c.under.login = nil
	}
	c.early.Store(false)
	c.pace.Leave()
	switch {
	case c.cut.Load() || c.s.down.Load():
		return nil, errGone
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, faultf(PeerHandshakeFailed, "not done in %v: %w", limit, err)
	case err != nil:
		return nil, err
	}
	if c.under != nil {
		c.under.limit = c.s.writeTimeout
	}
	if c.s.rechecks.Load() != rechecks { // it may have been passed by, for it was early
		if err := c.recheck(); err != nil {
			c.withdraw(err)
			return nil, errGone
		}
	}
	c.hold.Release(c.guest)
	c.hold.Settle()
	return rest, c.sock.SetDeadline(time.Time{})
}

// loginRead reads bytes of a login, and takes what they take of the budget: they come from an
// unknown peer.
func (c *admission) loginRead(r io.Reader, p []byte) (int, error) {
	if c.letters > 0 { // any byte will do, for a login has a limit of its own
		c.pace.Goes()
	}
	c.pace.Wait()
	n, err := r.Read(p)
	c.pace.Go()
	if n == 0 {
		return n, err
	}
	c.letters += n
	if need := int64(budget.SizeOf(int64(c.letters))); need > c.guest {
		if merr := c.memoryNow(need - c.guest); merr != nil {
			return n, errGone
		}
		c.guest = need
	}
	return n, err
}

// shake is the handshake of TLS.
func (c *admission) shake() error {
	c.under.quota = maxHandshake
	err := c.tls.Handshake()
	c.under.quota = 0
	if err != nil {
		if c.under.bytes == 0 && !errors.Is(err, os.ErrDeadlineExceeded) {
			return io.EOF // came and went, as those do that look whether somebody listens
		}
		c.acked.Store(true) // the alert is to arrive
		if other := notTLS(err); other != nil {
			return &fault{PeerHandshakeFailed, fmt.Errorf("%w (%w)", other, cleanError{err})}
		}
		return &fault{PeerHandshakeFailed, cleanError{err}}
	}
	state := c.tls.ConnectionState()
	if state.Version < tls.VersionTLS12 { // GetConfigForClient may allow more than we do
		return faultf(PeerHandshakeFailed, "%s is too old", tls.VersionName(state.Version))
	}
	c.sender.TLS = &state
	return nil
}

// greet is the Forward handshake. Where it refuses, it does so after the same work, whatever is
// wrong.
func (c *admission) greet() (rest []byte, err error) {
	sec, err := c.security()
	if err != nil {
		return nil, &fault{PeerHandshakeFailed, err}
	}
	h := sec.hello()
	if _, err := c.nc.Write(h.Append(nil)); err != nil {
		return nil, fmt.Errorf("HELO: %w", err)
	}
	var in wire.LetterReader
	letter, err := in.Read(loginReader{c}, wire.MaxPing)
	switch {
	case errors.Is(err, io.EOF) || err != nil && len(in.Seen()) == 0 && !errors.Is(err, os.ErrDeadlineExceeded):
		return nil, io.EOF // came and went
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, fmt.Errorf("no PING: %w", err)
	case err != nil && errors.Is(err, io.ErrUnexpectedEOF):
		return nil, faultf(PeerHandshakeFailed, "the stream ended within the PING")
	}
	var p wire.Ping
	if err == nil {
		err = p.Parse(letter)
	}
	if err != nil {
		if seen := in.Seen(); len(seen) > 0 && (seen[0] == '{' || seen[0] == '[') {
			err = errors.New("JSON is refused where there is a handshake") // docs/forward.md rule 37
		}
		if other := notPing(in.Seen()); other != nil {
			err = other
		}
		return nil, c.deny(PeerHandshakeFailed, reasonPing, fmt.Errorf("no PING: %w", err))
	}
	answer := sec.answer(&h, &p, addrOf(c.sock.RemoteAddr()))
	if !answer.OK {
		who := fmt.Sprintf("%s: host %s", answer.Reason, quote(p.Host))
		if sec.Users != nil {
			who += " user " + quote(p.User)
		}
		return nil, c.deny(PeerDenied, string(answer.Reason), errors.New(who))
	}
	if _, err := c.nc.Write(answer.Append(nil)); err != nil {
		return nil, &fault{PeerHandshakeFailed, fmt.Errorf("PONG: %w", err)}
	}
	c.sender.Host = string(p.Host)
	if sec.Users != nil {
		c.sender.User = string(p.User)
	}
	c.proof = sec.proofOf(c.sender, addrOf(c.sock.RemoteAddr()))
	c.once = sec.DenyKeepalive
	return in.Rest(), nil
}

// deny refuses, and returns why.
func (c *admission) deny(kind PeerErrorKind, reason string, why error) error {
	no := wire.Pong{Reason: []byte(reason)}
	if _, err := c.nc.Write(no.Append(nil)); err == nil {
		c.acked.Store(true) // the PONG is to arrive, before a reset for what was not read
	}
	return &fault{kind, why}
}

// A loginReader is what letters are read from.
type loginReader struct{ c *admission }

func (l loginReader) Read(p []byte) (int, error) {
	if l.c.tls != nil { // what comes from below it
		return l.c.nc.Read(p)
	}
	return l.c.loginRead(l.c.nc, p)
}
