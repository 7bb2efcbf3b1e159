// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/spillwaylog/spillway/internal/credentials"
	"github.com/spillwaylog/spillway/internal/lines"
)

// A Client asks a collector at its address. Its errors name that.
type Client struct {
	base     string // http://host:port
	security *credentials.WebClient
	http     http.Client
}

// Bounds of what a server may cost a client.
const (
	maxDialTime  = 10 * time.Second
	maxBeginTime = 30 * time.Second // until an answer begins; reloads and the like take no longer
	maxError     = 4 << 10          // bytes of a refusal that are shown
)

// Dial understands host:port, or a URL with parameters, and opens the files that it names. Nothing
// is connected yet. What there is to say of the files goes to warn.
func Dial(text string, warn func(error)) (*Client, error) {
	u, err := parseURL(text)
	if err != nil {
		return nil, err
	}
	address, _, err := hostOf(u)
	if err != nil {
		return nil, err
	}
	q := u.Params()
	c := &Client{base: u.Scheme + "://" + address}
	if c.security, err = credentials.ReadWebClient(u, q); err == nil {
		err = q.Err()
	}
	if err != nil {
		return nil, err
	}
	if err := c.security.Open(&credentials.Reports{Warn: warn}); err != nil {
		return nil, fmt.Errorf("%s: %w", c.base, err)
	}
	dialer := &net.Dialer{Timeout: maxDialTime}
	c.http = http.Client{
		Transport: &http.Transport{ // no proxy: an address of this machine, or of this network
			DialContext: dialer.DialContext,
			DialTLSContext: func(ctx context.Context, network, address string) (net.Conn, error) {
				return (&tls.Dialer{NetDialer: dialer, Config: c.security.TLS()}).DialContext(ctx, network, address)
			},
			ResponseHeaderTimeout: maxBeginTime, MaxResponseHeaderBytes: maxHeader, DisableCompression: true,
		},
		// It would get the token.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return c, nil
}

// Address is what is asked, without secrets.
func (c *Client) Address() string { return c.base }

// Close lets go of connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Get asks for a path. The caller closes the body.
func (c *Client) Get(ctx context.Context, path string, query url.Values) (io.ReadCloser, error) {
	to := c.base + path
	if len(query) > 0 {
		to += "?" + query.Encode()
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, to, nil)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.base, err)
	}
	if token := c.security.Token(); token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := c.http.Do(r)
	if err != nil {
		if e := (*url.Error)(nil); errors.As(err, &e) {
			err = e.Err // it repeats the URL
		}
		return nil, fmt.Errorf("%s: %w", c.base, err)
	}
	if answer.StatusCode == http.StatusOK {
		return answer.Body, nil
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(answer.Body, maxError)) // what is there of it
	if text = bytes.TrimSpace(text); answer.StatusCode == http.StatusNotFound {
		text = []byte("it knows no " + path + ": it is no collector, or an older one")
	}
	return nil, fmt.Errorf("%s: %d %s: %s", c.base, answer.StatusCode, http.StatusText(answer.StatusCode),
		lines.AppendEscaped(nil, text))
}
