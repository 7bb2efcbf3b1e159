// SPDX-License-Identifier: Apache-2.0

package load

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/spillwaylog/spillway/forward"
)

// A Dialer makes connections to one server, handshakes included. Network and Address are all it
// needs.
type Dialer struct {
	Network, Address string
	TLS              func() (*tls.Config, error)    // nil: plain
	Login            func() (*forward.Login, error) // nil: no Forward handshake
}

// dialTimeout bounds one connection, handshakes included.
const dialTimeout = 10 * time.Second

// ErrNoKeepalive says that a server takes one message a connection, which is no way to load it.
var ErrNoKeepalive = errors.New("the server takes one message a connection (keepalive is off)")

// Dial is for Options.Dial.
func (d *Dialer) Dial(ctx context.Context) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	sock, err := new(net.Dialer).DialContext(ctx, d.Network, d.Address)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = sock.SetDeadline(time.Unix(1, 0)) })
	nc, err := d.shake(sock)
	if !stop() {
		err = errors.Join(context.Cause(ctx), err)
	}
	if err != nil {
		_ = sock.Close() // of no use any more
		return nil, fmt.Errorf("%s: %w", d.Address, err)
	}
	return nc, nil
}

// shake does the handshakes.
func (d *Dialer) shake(nc net.Conn) (net.Conn, error) {
	if d.TLS != nil {
		config, err := d.TLS()
		if err != nil {
			return nil, err
		}
		config = config.Clone()
		if config.ServerName == "" && d.Network == "tcp" {
			if config.ServerName, _, err = net.SplitHostPort(d.Address); err != nil {
				return nil, err
			}
		}
		config.DynamicRecordSizingDisabled = true // nothing is shown of what is read before all of it is there
		t := tls.Client(nc, config)
		if err := t.Handshake(); err != nil {
			return nil, fmt.Errorf("TLS: %w", err)
		}
		nc = t
	}
	if d.Login != nil {
		login, err := d.Login()
		if err != nil {
			return nil, err
		}
		keepalive, err := login.Handshake(nc)
		if err != nil {
			return nil, err
		}
		if !keepalive {
			return nil, ErrNoKeepalive
		}
	}
	return nc, nil
}
