// SPDX-License-Identifier: Apache-2.0

package fluent

import (
	"context"
	"crypto/tls"
	"net"
	"strconv"
	"strings"

	"github.com/spillwaylog/spillway"
)

// dialer returns how to make a connection, or an *ErrUnknownNetwork. Each connection looks up the
// host anew.
func (c *Config) dialer(o *spillway.Options) (func(context.Context) (net.Conn, error), error) {
	plain := (&net.Dialer{}).DialContext
	if o != nil && o.Dial != nil {
		plain = o.Dial
	}
	network, address := "tcp", c.address()
	var secure *tls.Config
	switch c.FluentNetwork {
	case "tcp":
	case "unix":
		network, address = "unix", c.FluentSocketPath
	case "tls":
		secure = &tls.Config{
			ServerName:         c.host(),
			InsecureSkipVerify: c.TlsInsecureSkipVerify,
		}
	default:
		return nil, NewErrUnknownNetwork(c.FluentNetwork)
	}
	timeout := c.Timeout
	return func(ctx context.Context) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		nc, err := plain(ctx, network, address)
		if err != nil || secure == nil {
			return nc, err
		}
		conn := tls.Client(nc, secure)
		if err := conn.HandshakeContext(ctx); err != nil {
			_ = nc.Close() // it is of no use any more
			return nil, err
		}
		return conn, nil
	}, nil
}

// host is the host without the brackets of an IPv6 address.
func (c *Config) host() string {
	return strings.TrimSuffix(strings.TrimPrefix(c.FluentHost, "["), "]")
}

func (c *Config) address() string {
	return net.JoinHostPort(c.host(), strconv.Itoa(c.FluentPort))
}
