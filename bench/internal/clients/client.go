// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"context"
	"errors"
	"net"
	"strconv"
	"time"

	"github.com/fluent/fluent-logger-golang/fluent"

	"github.com/spillwaylog/spillway"
)

// A Client sends events to a Forward server.
type Client interface {
	Post(tag string, v any) error
	// Close returns when all is sent.
	Close() error
}

// A Kind makes Clients.
type Kind struct {
	Name string
	// Async says that a call returns before its event is written to the socket.
	Async bool
	Open  func(addr string) (Client, error)
}

// Kinds are all of them, Spillway first.
var Kinds = []Kind{
	{"spillway", true, func(addr string) (Client, error) { return OpenPoster(addr, "") }},
	{"official", false, func(addr string) (Client, error) { return OpenOfficial(addr, fluent.Config{}) }},
	{"official-async", true, func(addr string) (Client, error) {
		return OpenOfficial(addr, fluent.Config{Async: true, BufferLimit: 8192})
	}},
}

type poster struct{ *spillway.Logger }

// OpenPoster is Spillway's Post with the defaults, but it waits when the ring is full, so that
// nothing is dropped. The query is added to the destination's URL.
func OpenPoster(addr, query string) (Client, error) {
	l, err := spillway.Open("forward://"+addr+query,
		&spillway.Options{Name: "bench", Overflow: spillway.OverflowBlock, MaxWait: time.Minute})
	if err != nil {
		return nil, err
	}
	return poster{l}, nil
}

func (p poster) Close() error {
	ctx, cancel := context.WithTimeoutCause(context.Background(), time.Minute,
		errors.New("closing takes more than a minute"))
	defer cancel()
	return p.Logger.Close(ctx)
}

// OpenOfficial is fluent-logger-golang.
func OpenOfficial(addr string, c fluent.Config) (Client, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	c.FluentHost = host
	c.FluentPort, err = strconv.Atoi(port)
	if err != nil {
		return nil, err
	}
	l, err := fluent.New(c)
	if err != nil {
		return nil, err
	}
	return l, nil
}
