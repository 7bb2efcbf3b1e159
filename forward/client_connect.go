// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
)

// connect makes a connection that chunks can be written to: it dials, and does the handshakes of
// TLS and of Forward. When ctx is done it gives up, wherever it is.
func (c *Client) connect(ctx context.Context) (d dialed) {
	config, login, err := c.secrets()
	if err != nil {
		d.err = fmt.Errorf("forward: %s: %w", c.Address, err)
		return d
	}
	d.once = c.NoKeepalive
	d.sock, d.err = c.Dial(ctx)
	if d.err == nil && d.sock == nil {
		d.err = fmt.Errorf("forward: %s: Dial returned neither a connection nor an error", c.Address)
	}
	if d.nc = d.sock; d.err != nil || config == nil && login == nil {
		return d
	}
	sock := d.sock
	stop := context.AfterFunc(ctx, func() { _ = sock.Close() }) // deadlines are the connection's own to refuse
	doing := "the handshake of TLS"
	if config != nil {
		t := tls.Client(sock, config)
		d.nc, err = t, t.Handshake()
		if err != nil && t.ConnectionState().Version == 0 && errors.Is(ctx.Err(), context.DeadlineExceeded) {
			err = errors.New("no answer, as from a server that speaks no TLS")
		}
	}
	if err == nil && login != nil {
		doing = "the login"
		var keep bool
		keep, err = login.Handshake(d.nc)
		d.once = d.once || !keep
	}
	if !stop() && ctx.Err() != nil { // sock is closed
		err = fmt.Errorf("%w: %w", context.Cause(ctx), err)
	}
	if err != nil {
		_ = sock.Close() // of no use any more
		return dialed{err: fmt.Errorf("forward: %s: %s: %w", c.Address, doing, cleanError{err})}
	}
	return d
}

// secrets asks for what the next connection needs.
func (c *Client) secrets() (config *tls.Config, login *Login, err error) {
	config, login = c.TLS, c.Login
	if c.GetTLS != nil {
		if config, err = c.GetTLS(); err != nil {
			return nil, nil, fmt.Errorf("TLS: %w", err)
		}
	}
	if c.GetLogin != nil {
		if login, err = c.GetLogin(); err != nil {
			return nil, nil, fmt.Errorf("login: %w", err)
		}
	}
	if config == nil {
		return nil, login, nil
	}
	config = atLeast12(config)
	if config.ServerName == "" && c.Network != "unix" {
		if host, _, err := net.SplitHostPort(c.Address); err == nil {
			config.ServerName = host
		}
	}
	// Small records are for servers that show what they read before they have all of it.
	config.DynamicRecordSizingDisabled = true
	return config, login, nil
}
