// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/credentials"
	"github.com/spillwaylog/spillway/internal/urls"
)

// serverSchemes are those of a server that a command sends to.
var serverSchemes = []string{"forward", "forward+tls", "forward+unix"}

// clientTo returns a client of the one server that a URL names, which no call has been made of yet,
// and the URL without its secrets. What there is to say of the files that it names goes to
// warnings.
func clientTo(to, command string, warnings io.Writer) (client *forward.Client, shown string, err error) {
	u, err := urls.ParseAmong(to, serverSchemes)
	if err != nil {
		return nil, "", err
	}
	client = &forward.Client{Network: "tcp"}
	switch u.Scheme {
	case "forward", "forward+tls":
		if len(u.Hosts) != 1 {
			return nil, "", u.Errorf("%s takes one host", command)
		}
		client.Address = u.Hosts[0]
	case "forward+unix":
		client.Network, client.Address = "unix", u.Path
	default:
		return nil, "", u.Errorf("cannot send there; there are forward://host:port, forward+tls://host:port and forward+unix:///path")
	}
	p := u.Params()
	secrets, err := credentials.ReadClient(u, p, nil)
	if err == nil {
		err = p.Err()
	}
	if err != nil {
		return nil, "", err
	}
	err = secrets.Open(&credentials.Reports{Warn: func(err error) { fmt.Fprintln(warnings, "spillway:", err) }})
	if err != nil {
		return nil, "", fmt.Errorf("%s://%s: %w", u.Scheme, client.Address, err)
	}
	client.GetTLS, client.GetLogin, client.NoKeepalive = secrets.GetTLS(), secrets.GetLogin(), secrets.NoKeepalive()
	return client, u.String(), nil
}
