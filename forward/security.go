// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"slices"
	"sync"

	"github.com/spillwaylog/spillway/forward/internal/wire"
)

// Security is the server's side of the Forward handshake: which clients may send, and by which
// secrets that is known. It prints without them.
type Security struct {
	// Hostname is the name of this server that clients are told: os.Hostname if empty. A client of
	// the same name is told another one: clients refuse a server that has their own, for it may
	// just echo what they sent.
	Hostname string
	// SharedKey is what every client has to know that no rule gives another one.
	SharedKey string `json:"-"`
	// AllowEmptyKey permits a shared key that is empty; it is an error otherwise (docs/forward.md
	// rule 38).
	AllowEmptyKey bool
	// Users are names and passwords. nil: clients do not log in as users. Not nil: every client has
	// to.
	Users map[string]string `json:"-"`
	// Clients are rules for some clients. The first that fits a client decides (docs/forward.md
	// rule 39).
	Clients []ClientRule
	// DenyAnonymous refuses clients that no rule fits. Otherwise SharedKey and all Users apply to
	// them.
	DenyAnonymous bool
	// DenyKeepalive tells clients to use a connection for one message only, and closes it after the
	// first one, when its ack is written (docs/forward.md rule 40).
	DenyKeepalive bool
}

// A ClientRule says what applies to the clients that it fits. One without Host and Network fits
// all.
type ClientRule struct {
	// Host is the name that the client gives in its PING; nothing is looked up. Only the key proves
	// it: give each host its own. Empty: any name.
	Host string
	// Network is where the client's address must be in. Zero: anywhere. A unix socket has no
	// address: no network fits it.
	Network netip.Prefix
	// SharedKey is the key of these clients; that of the Security if empty.
	SharedKey string `json:"-"`
	// Users are the names that may log in from these clients. nil: all.
	Users []string
}

// ErrNoKey says that a shared key is empty and AllowEmptyKey is not set.
var ErrNoKey = errors.New("forward: the shared key is empty")

// Check returns what is wrong with s. A Server does so too, for every connection if there is a
// GetSecurity.
func (s *Security) Check() error {
	needed := !s.DenyAnonymous
	for i, r := range s.Clients {
		needed = needed || r.SharedKey == ""
		if r.Users != nil && s.Users == nil { // it would let everybody in
			return fmt.Errorf("forward: client rule %d: it names users, and Users is nil: nobody logs in as one", i+1)
		}
		if r.Network != (netip.Prefix{}) && !r.Network.IsValid() {
			return fmt.Errorf("forward: client rule %d: its network is none", i+1)
		}
	}
	if needed && s.SharedKey == "" && !s.AllowEmptyKey {
		return ErrNoKey
	}
	return nil
}

// Why a client is denied, in words that clients know from Fluentd. They name the class and nothing
// else.
const (
	reasonPing      = "invalid ping message"
	reasonAnonymous = "anonymous source denied"
	reasonKey       = "shared_key mismatch"
	reasonUser      = "username/password mismatch"
)

// hello makes the first letter to a client.
func (s *Security) hello() wire.Helo {
	h := wire.Helo{Nonce: wire.RandomBytes(wire.NonceSize), Keepalive: !s.DenyKeepalive}
	if s.Users != nil {
		h.Auth = wire.RandomBytes(wire.NonceSize)
	}
	return h
}

// rule finds what applies to a client: the first rule that fits, or one made of what applies to the
// others. near tells whether at least the network of one fits.
func (s *Security) rule(addr netip.Addr, host string) (r ClientRule, found, near bool) {
	for _, r := range s.Clients {
		if r.Network != (netip.Prefix{}) && !inside(r.Network, addr) {
			continue
		}
		near = true
		if r.Host != "" && r.Host != host {
			continue
		}
		if r.SharedKey == "" {
			r.SharedKey = s.SharedKey
		}
		return r, true, true
	}
	return ClientRule{SharedKey: s.SharedKey}, !s.DenyAnonymous, near
}

// inside is Contains for which an IPv4 address is the same in both its forms.
func inside(p netip.Prefix, addr netip.Addr) bool {
	if p.Addr().Is4In6() && p.Bits() >= 96 {
		p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
	}
	return p.Contains(addr.Unmap().WithZone(""))
}

// nobody is the password of users that there are not, so that they take the time of those that
// there are.
var nobody = sync.OnceValue(func() []byte { return wire.RandomBytes(wire.NonceSize) })

// answer checks a PING that answers h and makes the PONG. Whatever is wrong, the same is computed:
// neither the time nor the reason tells keys, or which users there are (docs/forward.md rule 37).
func (s *Security) answer(h *wire.Helo, p *wire.Ping, addr netip.Addr) wire.Pong {
	r, found, near := s.rule(addr, string(p.Host))
	key := []byte(r.SharedKey)
	right := wire.Equal(p.Digest, wire.Digest(p.Salt, p.Host, h.Nonce, key))
	known := true
	if s.Users != nil {
		password := nobody()
		set, ok := s.Users[string(p.User)]
		if ok {
			password = []byte(set)
		}
		fits := wire.Equal(p.Password, wire.Digest(h.Auth, p.User, password))
		known = fits && ok && (r.Users == nil || slices.Contains(r.Users, string(p.User)))
	}
	name := []byte(s.Hostname)
	if len(name) == 0 {
		name = []byte(ownName())
	}
	if string(p.Host) == string(name) {
		name = append(name, "-server"...)
	}
	proof := wire.Digest(p.Salt, name, h.Nonce, key)
	switch {
	case !found && !near:
		return wire.Pong{Reason: []byte(reasonAnonymous)}
	case !found || !right: // a name that no rule has looks like a wrong key
		return wire.Pong{Reason: []byte(reasonKey)}
	case !known:
		return wire.Pong{Reason: []byte(reasonUser)}
	}
	return wire.Pong{OK: true, Host: name, Digest: proof}
}

// proofOf returns what a sender that was let in has proved.
func (s *Security) proofOf(who *Sender, addr netip.Addr) *proof {
	r, _, _ := s.rule(addr, who.Host)
	return &proof{host: who.Host, user: who.User, key: r.SharedKey, password: s.Users[who.User]}
}

// String returns what is no secret.
func (s Security) String() string {
	return fmt.Sprintf("Security{Hostname: %q, DenyAnonymous: %t, DenyKeepalive: %t, %d users, %d rules}", s.Hostname,
		s.DenyAnonymous, s.DenyKeepalive, len(s.Users), len(s.Clients))
}

// Format writes String, whatever the verb: secrets are in no message.
func (s Security) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// LogValue returns String.
func (s Security) LogValue() slog.Value { return slog.StringValue(s.String()) }

// String returns what is no secret.
func (r ClientRule) String() string {
	return fmt.Sprintf("ClientRule{Host: %q, Network: %s, %d users}", r.Host, r.Network, len(r.Users))
}

// Format writes String, whatever the verb.
func (r ClientRule) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, r.String()) }

// LogValue returns String.
func (r ClientRule) LogValue() slog.Value { return slog.StringValue(r.String()) }

// ownName is the name of this machine.
var ownName = sync.OnceValue(func() string {
	name, err := os.Hostname()
	if err != nil || name == "" {
		return "localhost"
	}
	return name
})

// proof is what a connection has logged in with: the rule's secrets at that time.
type proof struct{ host, user, key, password string }
