// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"errors"
	"fmt"
	"net"
	"strconv"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/urls"
)

// listeners are the sockets of one input.
type listeners struct {
	url       string // with the port that was really taken
	stream    net.Listener
	heartbeat net.PacketConn // nil for unix sockets
	endpoint  *forward.Endpoint
}

func (l *listeners) close() {
	l.stream.Close()
	if l.heartbeat != nil {
		l.heartbeat.Close()
	}
}

// listen opens the sockets of an input URL.
func listen(text string) (*listeners, error) {
	u, err := urls.ParseBare(text)
	if err != nil {
		return nil, err
	}
	switch u.Scheme {
	case "forward":
		if len(u.Hosts) != 1 {
			return nil, u.Errorf("an input listens on one address; give another one as an input of its own")
		}
		return listenForward(u.Hosts[0])
	case "forward+unix":
		l, err := listenUnix(u.Path)
		if err != nil {
			return nil, err
		}
		return &listeners{url: "forward+unix://" + u.Path, stream: l}, nil
	default:
		return nil, u.Errorf("no input of this kind; there are forward://host:port and forward+unix:///path")
	}
}

// listenForward takes a port for TCP and for UDP heartbeats (docs/forward.md
// rule 41). With port 0 the system chooses one for TCP, which may be taken for
// UDP: then it is asked again.
func listenForward(address string) (*listeners, error) {
	const tries = 10
	for try := 1; ; try++ {
		l, err := net.Listen("tcp", address)
		if err != nil {
			return nil, fmt.Errorf("forward://%s: %w", address, err)
		}
		taken := l.Addr().String()
		pc, err := net.ListenPacket("udp", taken)
		if err == nil {
			return &listeners{url: "forward://" + taken, stream: l, heartbeat: pc}, nil
		}
		l.Close()
		_, port, splitErr := net.SplitHostPort(address)
		if n, _ := strconv.Atoi(port); splitErr != nil || n != 0 || try == tries {
			return nil, fmt.Errorf("forward://%s: heartbeats: %w", address, err)
		}
	}
}

// errLive says that another process listens on a unix socket.
var errLive = errors.New("another process listens on this socket")
