// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spillwaylog/spillway/forward"
)

type sendCmd struct {
	To      string        `help:"Server: forward://host:port, forward+tls://host:port?ca=PEM or forward+unix:///path." default:"forward://127.0.0.1:24224" placeholder:"URL"`
	Tag     string        `help:"Tag of the events." default:"stdin"`
	Field   string        `help:"Key under which a line that is no JSON object is sent." default:"message" placeholder:"KEY"`
	Timeout time.Duration `help:"Give up when a chunk is not acked within this time, resends included." default:"30s"`
}

// Help tells what does not fit behind a flag.
func (c *sendCmd) Help() string {
	return `Settings of the server are parameters of its URL, put in quotes for the shell: 'forward+tls://logs.example?ca=ca.pem&shared_key_file=shared.key'

TLS (forward+tls://): ca= names those who vouch for the server (default: those of the system), cert= and key= this client's certificate and key, server_name= the name that the server's certificate has to have; insecure=true takes any certificate.

Shared key and user: shared_key_file= or shared_key_env= say where the key stands; username= with password_file= or password_env= logs in as a user; hostname= is the name of this client; empty_key=true is a handshake with an empty key; keepalive=false makes a connection for each chunk.`
}

// Validate is called with the flags set.
func (c *sendCmd) Validate() error {
	if c.Timeout <= 0 {
		return fmt.Errorf("--timeout: %v is no time in which an ack can come", c.Timeout)
	}
	return nil
}

// Run sends standard input line by line. What is read while a chunk is on its
// way becomes the next chunk: so a slow stream is sent at once, a fast one in
// large chunks, in order, and each chunk is acked.
func (c *sendCmd) Run(ctx context.Context, s *streams) error {
	client, _, err := clientTo(c.To, "send", s.err)
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
		return fmt.Errorf("gave up after %v: %w", c.Timeout, err)
	}
	return err
}
