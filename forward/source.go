// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"context"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/spillwaylog/spillway/msgpack"
)

// source is what an Endpoint adds to the records of one connection. What stands under its keys is
// always ours: a peer's own key of such a name, str or bin, is dropped, also where nothing is known
// to put there, so that nobody claims to be somebody else.
type source struct {
	names []string
	pairs []byte // encoded
	count int    // of them
}

// most is how much longer a record becomes at most: the header of its map may grow too.
func (s *source) most() int {
	if s == nil {
		return 0
	}
	return len(s.pairs) + 4
}

// sourced tells whether an endpoint adds something.
func (ep *Endpoint) sourced() bool {
	return ep.AddressKey != "" || ep.HostKey != "" || ep.SubjectKey != "" || ep.UserKey != ""
}

// find makes the source of a connection, if its endpoint adds one, once: at its first message, for
// those that come and go without one are not worth asking who they are.
func (c *conn) find() {
	if c.found {
		return
	}
	c.found = true
	if !c.ep.sourced() {
		c.plain = c.forced == nil && c.prefix == nil
		return
	}
	s := new(source)
	add := func(key, value string) {
		if key == "" {
			return
		}
		s.names = append(s.names, key)
		if value != "" {
			s.pairs = msgpack.AppendString(msgpack.AppendString(s.pairs, key), strings.ToValidUTF8(value, "\ufffd"))
			s.count++
		}
	}
	add(c.ep.AddressKey, c.peer)
	if c.ep.HostKey != "" {
		host := c.sender.Host
		if host == "" {
			host = c.s.hosts.of(c.s.ctx, c.sock.RemoteAddr(), c.peer)
		}
		add(c.ep.HostKey, host)
	}
	subject := ""
	if state := c.sender.TLS; state != nil && len(state.PeerCertificates) > 0 {
		subject = state.PeerCertificates[0].Subject.String()
	}
	add(c.ep.SubjectKey, subject)
	add(c.ep.UserKey, c.sender.User)
	c.src = s
}

// appendRecord appends the map that record begins with, with what the source adds. It ends at
// record[n].
func (s *source) appendRecord(dst, record []byte) (out []byte, n int) {
	t, at, _ := msgpack.ReadToken(record)
	header := len(dst)
	dst = msgpack.AppendMapHeader(dst, t.Len+s.count)
	left, from := 0, at
	for range t.Len {
		start := at
		key, _, n, err := msgpack.ReadBytes(record[at:])
		if err != nil { // a key of another kind
			n, _ = msgpack.Skip(record[at:])
			key = nil
		}
		at += n
		n, _ = msgpack.Skip(record[at:])
		at += n
		if key != nil && s.has(key) {
			dst = append(dst, record[from:start]...)
			from = at
			left++
		}
	}
	dst = append(dst, record[from:at]...)
	if left > 0 {
		n := t.Len + s.count - left
		switch h := dst[header:]; h[0] {
		case codeMap32:
			h[1], h[2], h[3], h[4] = byte(n>>24), byte(n>>16), byte(n>>8), byte(n)
		case codeMap16:
			h[1], h[2] = byte(n>>8), byte(n)
		default:
			h[0] = codeMap0 | byte(n)
		}
	}
	return append(dst, s.pairs...), at
}

func (s *source) has(key []byte) bool {
	for _, name := range s.names {
		if name == string(key) {
			return true
		}
	}
	return false
}

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
	hostsMost    = 4096
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
	if h.known == nil || len(h.known) >= hostsMost {
		h.known = make(map[string]knownHost)
	}
	h.known[peer] = knownHost{name, time.Now().Add(hostMemory)}
	return name
}
