// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/urls"
)

type sendCmd struct {
	To      string        `help:"Server: forward://host:port or forward+unix:///path." default:"forward://127.0.0.1:24224" placeholder:"URL"`
	Tag     string        `help:"Tag of the events." default:"stdin"`
	Field   string        `help:"Key under which a line that is no JSON object is sent." default:"message" placeholder:"KEY"`
	Timeout time.Duration `help:"Give up when a chunk is not acked within this time, resends included." default:"30s"`
}

// Run sends standard input line by line. What is read while a chunk is on its
// way becomes the next chunk: so a slow stream is sent at once, a fast one in
// large chunks, in order, and each chunk is acked.
func (c *sendCmd) Run(ctx context.Context, s *streams) error {
	client, err := c.client()
	if err != nil {
		return err
	}
	defer client.Close()

	lines := newLineBatches(s.in, c.Field)
	go lines.read()
	acked := 0
	for err == nil {
		entries, events, more := lines.next(ctx)
		if !more {
			break
		}
		chunk := &forward.Chunk{Tag: c.Tag, ID: forward.NewID(), Own: true, Entries: entries, Events: events}
		if err = c.send(ctx, client, chunk); err == nil {
			acked += events
		}
	}
	_, printErr := fmt.Fprintf(s.out, "%d acked\n", acked)
	left := lines.stop() - acked
	if err == nil {
		err = errors.Join(lines.err(), ctx.Err())
	}
	if err != nil {
		return fmt.Errorf("%d lines not acked, and what was not read yet: %w", left, err)
	}
	return printErr
}

func (c *sendCmd) send(ctx context.Context, client *forward.Client, chunk *forward.Chunk) error {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	err := client.Send(ctx, chunk)
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("no ack from %s within %v: %w", c.To, c.Timeout, err)
	}
	return err
}

func (c *sendCmd) client() (*forward.Client, error) {
	u, err := urls.ParseBare(c.To)
	if err != nil {
		return nil, err
	}
	switch u.Scheme {
	case "forward":
		if len(u.Hosts) != 1 {
			return nil, u.Errorf("send takes one host")
		}
		return &forward.Client{Network: "tcp", Address: u.Hosts[0]}, nil
	case "forward+unix":
		return &forward.Client{Network: "unix", Address: u.Path}, nil
	}
	return nil, u.Errorf("cannot send there; there are forward://host:port and forward+unix:///path")
}
