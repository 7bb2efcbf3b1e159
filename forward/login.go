// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"

	"github.com/spillwaylog/spillway/forward/internal/wire"
)

// A Login is the client's side of the Forward handshake. It prints without its secrets.
type Login struct {
	// Hostname is the name of this client that the server is told: os.Hostname if empty.
	Hostname string
	// SharedKey is what both ends know.
	SharedKey string `json:"-"`
	// AllowEmptyKey permits a shared key that is empty; it is an error otherwise (docs/forward.md
	// rule 38).
	AllowEmptyKey bool
	// Username and Password are sent, the password as a digest, if the server asks for them.
	Username string
	Password string `json:"-"`
}

// ErrDenied says that a login failed: the server refused it, or could not prove that it knows the
// shared key.
var ErrDenied = errors.New("login denied")

// String returns what is no secret.
func (l Login) String() string {
	return fmt.Sprintf("Login{Hostname: %q, Username: %q}", l.Hostname, l.Username)
}

// Format writes String, whatever the verb: secrets are in no message.
func (l Login) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, l.String()) }

// LogValue returns String.
func (l Login) LogValue() slog.Value { return slog.StringValue(l.String()) }

// Handshake logs in on a connection that is made already, TLS included: it reads HELO, writes PING
// and reads PONG, and nothing beyond. It waits as long as nc's deadline allows. keepalive is what
// the server says: false if the connection is good for one message only. An error that wraps
// ErrDenied says that the other end does not accept our login; after any error the connection is of
// no use.
func (l *Login) Handshake(nc net.Conn) (keepalive bool, err error) {
	if l.SharedKey == "" && !l.AllowEmptyKey {
		return false, ErrNoKey
	}
	var in wire.LetterReader
	letter, err := in.Read(nc, wire.MaxAnswer)
	if err != nil {
		return false, noLetter("HELO", &in, err)
	}
	var h wire.Helo
	if err := h.Parse(letter); err != nil {
		return false, err
	}
	name, key := []byte(l.Hostname), []byte(l.SharedKey)
	if len(name) == 0 {
		name = []byte(ownName())
	}
	// As text: there are servers that take no bin (docs/forward.md rule 35).
	salt := hex.AppendEncode(nil, wire.RandomBytes(wire.NonceSize))
	p := wire.Ping{Host: name, Salt: salt, Digest: wire.Digest(salt, name, h.Nonce, key)}
	if len(h.Auth) > 0 {
		if l.Username == "" {
			return false, fmt.Errorf("%w: the server wants a user name and a password", ErrDenied)
		}
		p.User = []byte(l.Username)
		p.Password = wire.Digest(h.Auth, p.User, []byte(l.Password))
	}
	if _, err := nc.Write(p.Append(nil)); err != nil {
		return false, fmt.Errorf("PING: %w", err)
	}
	back := wire.NewLetterReader(in.Rest()) // too early to be right, but as wrong as if it had come later
	if letter, err = back.Read(nc, wire.MaxAnswer); err != nil {
		return false, noLetter("PONG", back, err)
	}
	var a wire.Pong
	switch err := a.Parse(letter); {
	case err != nil:
		return false, fmt.Errorf("%w: %w", ErrDenied, err)
	case !a.OK:
		return false, fmt.Errorf("%w: %s", ErrDenied, denial(a.Reason))
	case !wire.Equal(a.Digest, wire.Digest(salt, a.Host, h.Nonce, key)): // docs/forward.md rule 34
		return false, fmt.Errorf("%w: the server does not know the shared key", ErrDenied)
	case bytes.Equal(a.Host, name): // a server that sends our own digest back knows nothing
		return false, fmt.Errorf("%w: the server has the name of this client, so what it knows may be an echo: give one of them another hostname", ErrDenied)
	case len(back.Rest()) > 0:
		return false, errors.New("the server went on behind its PONG")
	}
	return h.Keepalive, nil
}

// noLetter says why a letter of the server did not come.
func noLetter(name string, in *wire.LetterReader, err error) error {
	switch {
	case len(in.Seen()) == 0 && (errors.Is(err, net.ErrClosed) || errors.Is(err, os.ErrDeadlineExceeded) ||
		errors.Is(err, io.ErrClosedPipe)):
		err = errors.New("the server sends nothing, as one does that asks for no login")
	case errors.Is(err, io.EOF):
		err = errors.New("the server closed the connection")
	case len(in.Seen()) > 0 && in.Seen()[0] == 0x15: // of an alert
		err = fmt.Errorf("%w: the server seems to speak TLS", err)
	case len(in.Seen()) > 0 && in.Seen()[0] == 'H':
		err = fmt.Errorf("%w: the server seems to speak HTTP", err)
	}
	return fmt.Errorf("no %s: %w", name, err)
}

// denial says what a server's reason means, and quotes it.
func denial(reason []byte) string {
	text := fmt.Sprintf("%q", reason[:min(len(reason), maxReason)])
	if len(reason) > maxReason {
		text += "…"
	}
	switch r := string(reason); {
	case strings.Contains(r, "shared_key"):
		return "wrong shared key: " + text
	case strings.Contains(r, "username/password"):
		return "wrong user name or password: " + text
	case strings.Contains(r, "anonymous"):
		return "not a client that the server knows: " + text
	}
	return text
}
