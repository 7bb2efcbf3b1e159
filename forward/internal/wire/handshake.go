// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"crypto/rand"
	"crypto/sha512"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spillwaylog/spillway/msgpack"
)

// How this file is organised. A handshake is three letters (docs/forward.md rules 31 to 33): HELO
// from the server, PING from the client, PONG from the server. Each has append, which writes it,
// and parse, which reads a complete one; what was parsed aliases it. A letterReader finds where a
// letter ends.

// Sizes, in bytes.
const (
	NonceSize    = 16
	digestSize   = 2 * sha512.Size // of the text, which is hexadecimal
	letterBuffer = 512             // a usual one is shorter
	MaxPing      = 8 << 10         // of an unknown peer
	MaxAnswer    = 64 << 10        // of a server that was asked for
)

// LetterReader reads one letter, however it is cut.
type LetterReader struct {
	buf  []byte
	end  int // of the letter
	have int // of what has arrived
	scan msgpack.Scanner
}

var errLetterLong = errors.New("longer than any handshake")

// Read reads from r until a letter is complete. io.EOF: nothing came before the end.
func (l *LetterReader) Read(r io.Reader, limit int) (letter []byte, err error) {
	if len(l.buf) == l.have {
		l.buf = append(l.buf, make([]byte, letterBuffer)...)
	}
	l.scan.Reset(msgpack.Limits{Depth: 8, Length: int64(limit), Count: int64(limit)})
	var rerr error
	for n, empty := 0, 0; ; {
		if l.have > 0 && l.end == 0 && !IsArray(l.buf[0]) {
			return nil, fmt.Errorf("it begins with %#02x, which is no array", l.buf[0])
		}
		k, done, err := l.scan.Scan(l.buf[l.end:l.have])
		l.end += k
		switch {
		case err != nil:
			return nil, err
		case done:
			return l.buf[:l.end], nil
		case errors.Is(rerr, io.EOF) && l.have > 0:
			return nil, io.ErrUnexpectedEOF
		case rerr != nil:
			return nil, rerr
		case l.have >= limit:
			return nil, fmt.Errorf("%w: over %d bytes", errLetterLong, limit)
		case empty > 100:
			return nil, io.ErrNoProgress
		}
		if l.have == len(l.buf) {
			l.buf = append(l.buf, make([]byte, min(len(l.buf), limit-len(l.buf)))...)
		}
		n, rerr = r.Read(l.buf[l.have:])
		if l.have += n; n == 0 {
			empty++
		}
	}
}

// NewLetterReader returns a reader of which some bytes have come already.
func NewLetterReader(come []byte) *LetterReader {
	return &LetterReader{buf: slices.Clone(come), have: len(come)}
}

// Seen is what has come so far.
func (l *LetterReader) Seen() []byte { return l.buf[:l.have] }

// Rest is what came behind the letter.
func (l *LetterReader) Rest() []byte { return l.buf[l.end:l.have] }

// Opens reads a letter's array and its first element, and returns the number of elements behind
// that and where they begin.
func Opens(b []byte, name string) (count, at int, err error) {
	t, at, err := msgpack.ReadToken(b)
	if err != nil || t.Kind != msgpack.KindArray || t.Len < 1 {
		return 0, 0, fmt.Errorf("no %s: no array", name)
	}
	first, _, n, err := msgpack.ReadBytes(b[at:])
	if err != nil || string(first) != name {
		return 0, 0, fmt.Errorf("no %s", name)
	}
	return t.Len - 1, at + n, nil
}

// Helo is the server's first letter.
type Helo struct {
	Nonce     []byte
	Auth      []byte // salt of passwords; empty: nobody logs in as a user
	Keepalive bool
}

// Append appends the letter.
func (h *Helo) Append(b []byte) []byte {
	b = msgpack.AppendArrayHeader(b, 2)
	b = msgpack.AppendString(b, "HELO")
	b = msgpack.AppendMapHeader(b, 3)
	b = msgpack.AppendString(b, "nonce")
	b = msgpack.AppendBin(b, h.Nonce)
	b = msgpack.AppendString(b, "auth")
	b = msgpack.AppendBin(b, h.Auth) // bin also when it is empty: there are clients that read nothing else
	b = msgpack.AppendString(b, "keepalive")
	return msgpack.AppendBool(b, h.Keepalive)
}

// Parse reads a complete letter.
func (h *Helo) Parse(b []byte) error {
	*h = Helo{Keepalive: true}
	count, at, err := Opens(b, "HELO")
	if err != nil {
		return err
	}
	t, n, err := msgpack.ReadToken(b[at:])
	if count < 1 || err != nil || t.Kind != msgpack.KindMap {
		return errors.New("a HELO without its map")
	}
	at += n
	for range t.Len {
		key, _, _, err := msgpack.ReadBytes(b[at:])
		if err != nil { // of another kind: unknown
			key = nil
		}
		if n, err = msgpack.Skip(b[at:]); err != nil {
			return err
		}
		at += n
		if n, err = msgpack.Skip(b[at:]); err != nil {
			return err
		}
		value := b[at : at+n]
		at += n
		switch string(key) {
		case "nonce":
			if h.Nonce, _, _, err = msgpack.ReadBytes(value); err != nil {
				return fmt.Errorf("a HELO whose nonce is wrong: %w", err)
			}
		case "auth":
			if h.Auth, err = textOrNil(value); err != nil {
				return fmt.Errorf("a HELO whose auth is wrong: %w", err)
			}
		case "keepalive":
			if t, _, err := msgpack.ReadToken(value); err == nil && t.Kind == msgpack.KindBool {
				h.Keepalive = t.Bool()
			}
		}
	}
	if len(h.Nonce) == 0 {
		return errors.New("a HELO without a nonce")
	}
	return nil
}

// Ping is the client's letter.
type Ping struct {
	Host, Salt, Digest, User, Password []byte // password is a digest
}

// Append appends the letter.
func (p *Ping) Append(b []byte) []byte {
	b = msgpack.AppendArrayHeader(b, 6)
	b = msgpack.AppendString(b, "PING")
	for _, v := range [...][]byte{p.Host, p.Salt, p.Digest, p.User, p.Password} {
		b = msgpack.AppendStringHeader(b, len(v))
		b = append(b, v...)
	}
	return b
}

// Parse reads a complete letter.
func (p *Ping) Parse(b []byte) error {
	*p = Ping{}
	count, at, err := Opens(b, "PING")
	if err != nil {
		return err
	}
	into := [...]*[]byte{&p.Host, &p.Salt, &p.Digest, &p.User, &p.Password}
	if count != len(into) {
		return fmt.Errorf("a PING of %d elements", count+1)
	}
	for i, v := range into {
		n, err := msgpack.Skip(b[at:])
		if err != nil {
			return err
		}
		if i < 3 {
			*v, _, _, err = msgpack.ReadBytes(b[at : at+n])
		} else {
			*v, err = textOrNil(b[at : at+n])
		}
		if err != nil {
			return fmt.Errorf("a PING whose element %d is wrong: %w", i+1, err)
		}
		at += n
	}
	return nil
}

// Pong is the server's answer.
type Pong struct {
	OK                   bool
	Reason, Host, Digest []byte
}

// Append appends the letter.
func (p *Pong) Append(b []byte) []byte {
	b = msgpack.AppendArrayHeader(b, 5)
	b = msgpack.AppendString(b, "PONG")
	b = msgpack.AppendBool(b, p.OK)
	for _, v := range [...][]byte{p.Reason, p.Host, p.Digest} {
		b = msgpack.AppendStringHeader(b, len(v))
		b = append(b, v...)
	}
	return b
}

// Parse reads a PONG. One that refuses may lack what is behind that, or have something else there.
func (p *Pong) Parse(b []byte) error {
	*p = Pong{}
	count, at, err := Opens(b, "PONG")
	if err != nil {
		return err
	}
	t, n, err := msgpack.ReadToken(b[at:])
	if count < 1 || err != nil || t.Kind != msgpack.KindBool {
		return errors.New("a PONG that says neither yes nor no")
	}
	at += n
	p.OK = t.Bool()
	into := [...]*[]byte{&p.Reason, &p.Host, &p.Digest}
	if p.OK && count-1 < len(into) {
		return fmt.Errorf("a PONG of %d elements", count+1)
	}
	for i, v := range into[:min(len(into), count-1)] {
		if n, err = msgpack.Skip(b[at:]); err != nil {
			return err
		}
		*v, err = textOrNil(b[at : at+n])
		if err != nil && p.OK && i > 0 {
			return fmt.Errorf("a PONG whose element %d is wrong: %w", i+2, err)
		}
		at += n
	}
	return nil
}

// textOrNil reads a str, a bin, or a nil, which is empty.
func textOrNil(b []byte) ([]byte, error) {
	if t, _, err := msgpack.ReadToken(b); err == nil && t.Kind == msgpack.KindNil {
		return nil, nil
	}
	v, _, _, err := msgpack.ReadBytes(b)
	return v, err
}

// Digest is the SHA-512 of parts one after another, in hexadecimal.
func Digest(parts ...[]byte) []byte {
	h := sha512.New()
	for _, p := range parts {
		_, _ = h.Write(p) // never fails
	}
	return hex.AppendEncode(make([]byte, 0, digestSize), h.Sum(make([]byte, 0, sha512.Size)))
}

// Equal compares digests in a time that tells nothing about them (docs/forward.md rule 37).
func Equal(a, b []byte) bool { return subtle.ConstantTimeCompare(a, b) == 1 }

// RandomBytes returns n of them.
func RandomBytes(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails, see crypto/rand
	return b
}
