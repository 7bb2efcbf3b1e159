// SPDX-License-Identifier: Apache-2.0

package output

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/credentials"
)

// reachHosts connects to all hosts.
func (c *ForwardConfig) reachHosts(ctx context.Context, secrets *credentials.Client) error {
	if err := secrets.Open(&credentials.Reports{Warn: func(error) {}}); err != nil {
		return err
	}
	results := make(chan error)
	for _, name := range c.Hosts {
		client := &forward.Client{
			Network: c.Network, Address: name, GetTLS: c.GetTLS, GetLogin: secrets.GetLogin(),
			DialTimeout: c.DialTimeout,
		}
		if client.GetTLS == nil {
			client.GetTLS = secrets.GetTLS()
		}
		go func() { results <- reachHost(ctx, client) }()
	}
	var errs []error
	for range c.Hosts {
		errs = append(errs, <-results)
	}
	return errors.Join(errs...)
}

// farewell is how long a server may take to refuse a certificate: with TLS 1.3 it does so after
// the handshake.
const farewell = time.Second

func reachHost(ctx context.Context, client *forward.Client) error {
	changes := make(chan error, 2)
	client.Changed = func(up bool, err error) {
		if !up && err == nil {
			err = fmt.Errorf("forward: %s: %w", client.Address, errNoMessage)
		}
		select {
		case changes <- err:
		default:
		}
	}
	client.Connect(true)
	defer client.Close()
	for up := false; ; up = true {
		var late <-chan time.Time
		if up {
			late = time.After(farewell)
		}
		select {
		case err := <-changes:
			if err != nil || client.GetTLS == nil {
				return err
			}
		case <-late:
			return nil
		case <-ctx.Done():
			return fmt.Errorf("forward: %s: no answer: %w", client.Address, context.Cause(ctx))
		}
	}
}
