// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"net/netip"
	"time"

	"github.com/spillwaylog/spillway/collector"
	"github.com/spillwaylog/spillway/internal/credentials"
	"github.com/spillwaylog/spillway/internal/urls"
)

// A Plan is an address that was understood; nothing was touched.
type Plan struct {
	address  string
	shown    string // the URL, without secrets
	loopback bool
	stall    time.Duration // after which an output that does not move is not ready
	tail     bool          // events are shown
	security *credentials.Web
}

const stallAfter = time.Minute

// Read understands host:port, or a URL with parameters. Of an empty text it returns nil.
func Read(text string) (*Plan, error) {
	if text == "" {
		return nil, nil //nolint:nilnil // there is none
	}
	u, err := parseURL(text)
	if err != nil {
		return nil, err
	}
	return read(u)
}

func read(u *urls.URL) (*Plan, error) {
	address, host, err := hostOf(u)
	if err != nil {
		return nil, err
	}
	p := &Plan{shown: u.String(), address: address, loopback: loopback(host)}
	q := u.Params()
	p.security, err = credentials.ReadWeb(u, q)
	p.stall = q.Duration("stalled_after", stallAfter)
	anonymous := q.Bool("anonymous", false)
	p.tail = q.Bool("tail", err == nil && p.security.Guarded())
	if err == nil {
		err = q.Err()
	}
	if err != nil {
		return nil, err
	}
	switch {
	case !p.loopback && !p.security.Guarded() && !anonymous:
		return nil, u.Errorf("from %s others than this machine could ask: give token_file=, or https:// with client_ca=, or say anonymous=true", p.address)
	case p.stall < time.Second:
		return nil, u.Errorf("stalled_after is at least 1s: figures of outputs are up to a second old")
	}
	return p, nil
}

// loopback reports whether only this machine reaches a host.
func loopback(host string) bool {
	a, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && a.IsLoopback()
}

// Parameters are the schemes of the URL, each with its parameters, and "" for none.
func Parameters() map[string][]collector.Parameter {
	table := map[string][]collector.Parameter{"": {}}
	for _, scheme := range schemes {
		u, err := urls.Parse(scheme+"://"+DefaultAddress, schemes...)
		if err != nil {
			panic(err) // it is right
		}
		_, _ = read(u) // of interest is what it asks for
		table[scheme] = u.Known()
	}
	return table
}
