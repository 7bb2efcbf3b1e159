// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"context"
	"net"
	"strings"
	"sync"
	"time"
)

// hosts remembers the names of addresses, or that they have none.
type hosts struct {
	look func(ctx context.Context, addr string) ([]string, error) // nil: the system's

	mu    sync.Mutex
	known map[string]knownHost
}

type knownHost struct {
	name  string
	until time.Time
}

const (
	hostPatience = 2 * time.Second
	hostMemory   = 5 * time.Minute
	maxHosts     = 4096
)

// of returns the name that belongs to the address of a peer by reverse lookup, the address itself
// if there is none or it takes too long to find.
func (h *hosts) of(ctx context.Context, addr net.Addr, peer string) string {
	if ip := addrOf(addr); !ip.IsValid() {
		return peer // no address that could have a name
	}
	now := time.Now()
	h.mu.Lock()
	k, ok := h.known[peer]
	h.mu.Unlock()
	if ok && now.Before(k.until) {
		return k.name
	}
	look := h.look
	if look == nil {
		look = net.DefaultResolver.LookupAddr
	}
	ctx, cancel := context.WithTimeout(ctx, hostPatience)
	defer cancel()
	name := peer
	if names, err := look(ctx, peer); err == nil && len(names) > 0 {
		if n := strings.TrimSuffix(names[0], "."); n != "" {
			name = n
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.known == nil || len(h.known) >= maxHosts {
		h.known = make(map[string]knownHost)
	}
	h.known[peer] = knownHost{name, time.Now().Add(hostMemory)}
	return name
}
