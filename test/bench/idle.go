// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"io"
	"net"
)

// dialMany opens n connections, each of which has had one message acked.
func dialMany(addr string, n int) ([]net.Conn, error) {
	one, at := ackedMessage()
	ids := newIDs()
	ack := make([]byte, ackSize)
	conns := make([]net.Conn, n)
	for i := range conns {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			return nil, err
		}
		ids.put(one[at:])
		if _, err := c.Write(one); err != nil {
			return nil, err
		}
		if _, err := io.ReadFull(c, ack); err != nil {
			return nil, err
		}
		conns[i] = c
	}
	return conns, nil
}
