// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
)

// Security is the server's side of the Forward handshake: who may send, and by which secrets that is known. It prints without them.
type Security struct {
	// Hostname is the name of this server that clients are told: os.Hostname if empty. Fluentd refuses a server that has its own name.
	Hostname string
	// SharedKey is what every client has to know that no rule gives another one.
	SharedKey string `json:"-"`
	// AllowEmptyKey permits a shared key that is empty; it is an error otherwise (docs/forward.md rule 38).
	AllowEmptyKey bool
	// Users are names and passwords. nil: clients do not log in as users. Not nil: every client has to.
	Users map[string]string `json:"-"`
	// Clients are rules for some clients. The first that fits a client decides (docs/forward.md rule 39).
	Clients []ClientRule
	// DenyAnonymous refuses clients that no rule fits. Otherwise SharedKey and all Users apply to them.
	DenyAnonymous bool
	// DenyKeepalive tells clients to use a connection for one message only, and closes it after the first one, when its ack is written (docs/forward.md rule 40).
	DenyKeepalive bool
}

// A ClientRule says what applies to the clients that it fits. One without Host and Network fits all.
type ClientRule struct {
	// Host is the name that the client gives in its PING; nothing is looked up. Only the key proves it: give each host its own. Empty: any name.
	Host string
	// Network is where the client's address must be in. Zero: anywhere. A unix socket has no address: no network fits it.
	Network netip.Prefix
	// SharedKey is the key of these clients; that of the Security if empty.
	SharedKey string `json:"-"`
	// Users are the names that may log in from these clients. nil: all.
	Users []string
}

// ErrNoKey says that a shared key is empty and AllowEmptyKey is not set.
var ErrNoKey = errors.New("forward: the shared key is empty")

// Check returns what is wrong with s.
func (s *Security) Check() error {
	if s.AllowEmptyKey {
		return nil
	}
	needed := !s.DenyAnonymous
	for _, r := range s.Clients {
		needed = needed || r.SharedKey == ""
	}
	if needed && s.SharedKey == "" {
		return ErrNoKey
	}
	return nil
}

// String returns what is no secret.
func (s Security) String() string {
	return fmt.Sprintf("Security{Hostname: %q, DenyAnonymous: %t, DenyKeepalive: %t, %d users, %d rules}", s.Hostname, s.DenyAnonymous, s.DenyKeepalive, len(s.Users), len(s.Clients))
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
