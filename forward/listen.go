// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
)

// DefaultAddress is where ListenAndServe listens if nothing else is said: the port that is
// registered for the protocol.
const DefaultAddress = ":24224"

// portTries is how often the system is asked for a port that is free for both TCP and UDP.
const portTries = 10

// ListenAndServe listens on the address of a network, "tcp", "tcp4", "tcp6" or "unix", and then
// calls Serve to handle what comes. On TCP it answers UDP heartbeats on the same port too
// (docs/forward.md rule 41). If address is blank, DefaultAddress is used.
//
// ListenAndServe always returns an error that is not nil. After Shutdown or Close it is
// ErrServerClosed.
func (s *Server) ListenAndServe(network, address string) error {
	s.init()
	if s.down.Load() {
		return ErrServerClosed
	}
	var (
		l   net.Listener
		pc  net.PacketConn
		err error
	)
	switch network {
	case "tcp", "tcp4", "tcp6":
		if address == "" {
			address = DefaultAddress
		}
		l, pc, err = Listen(network, address)
	case "unix":
		l, err = net.Listen(network, address)
	default:
		err = net.UnknownNetworkError(network)
	}
	if err != nil {
		return fmt.Errorf("forward: %w", err)
	}
	if pc == nil {
		return s.Serve(l)
	}
	failed := make(chan error, 1)
	go func() {
		err := s.ServeHeartbeat(pc)
		failed <- err
		_ = l.Close() // one does not go on without the other
	}()
	err = s.Serve(l)
	_ = pc.Close() // ServeHeartbeat returns
	if herr := <-failed; errors.Is(err, net.ErrClosed) && !errors.Is(herr, net.ErrClosed) {
		return fmt.Errorf("forward: heartbeats: %w", herr)
	}
	return err
}

// Listen takes one port for TCP, which is for Serve, and for UDP, which is for ServeHeartbeat.
// network is "tcp", "tcp4" or "tcp6". With port 0 the system chooses one for TCP, which may be
// taken for UDP: then it is asked again.
func Listen(network, address string) (net.Listener, net.PacketConn, error) {
	for try := 1; ; try++ {
		l, err := net.Listen(network, address)
		if err != nil {
			return nil, nil, err
		}
		pc, err := net.ListenPacket(strings.Replace(network, "tcp", "udp", 1), l.Addr().String())
		if err == nil {
			return l, pc, nil
		}
		_ = l.Close() // nothing was served
		_, port, splitErr := net.SplitHostPort(address)
		if n, portErr := strconv.Atoi(port); splitErr != nil || portErr != nil || n != 0 || try == portTries {
			return nil, nil, fmt.Errorf("heartbeats: %w", err)
		}
	}
}
