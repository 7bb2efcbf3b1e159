// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"crypto/sha512"
	"encoding/hex"
	"fmt"
	"io"
)

// A login is what a client proves.
type login struct {
	host, key, user, password string
}

// A helo is what a server greets with.
type helo struct {
	raw         value
	nonce, auth string
	keepalive   bool
}

// digest is the sum of SHA-512 over all parts, in hexadecimal.
func digest(parts ...string) string {
	h := sha512.New()
	for _, p := range parts {
		_, _ = io.WriteString(h, p) // never fails
	}
	return hex.EncodeToString(h.Sum(nil))
}

// readHELO reads the greeting.
func readHELO(r *valueReader) (h helo, err error) {
	v, err := r.next()
	if err != nil {
		return h, fmt.Errorf("HELO: %w", err)
	}
	h.raw, h.keepalive = v, true
	if v.kind != "array" || len(v.list) != 2 || v.list[0].text != "HELO" || v.list[1].kind != "map" {
		return h, fmt.Errorf("no HELO: % x", clip(v.raw))
	}
	options := &v.list[1]
	if nonce, ok := options.get("nonce"); ok {
		h.nonce = nonce.text
	}
	if auth, ok := options.get("auth"); ok {
		h.auth = auth.text
	}
	if k, ok := options.get("keepalive"); ok {
		h.keepalive = k.kind != "bool" || k.n == 1
	}
	return h, nil
}

// ping answers a greeting, in hexadecimal.
func (l *login) ping(h *helo, salt string) string {
	name, secret := "", ""
	if h.auth != "" {
		name, secret = l.user, digest(h.auth, l.user, l.password)
	}
	return "96 " + str("PING") + str(l.host) + str(salt) + str(digest(salt, l.host, h.nonce,
		l.key)) + str(name) + str(secret)
}

// A pong is a server's answer.
type pong struct {
	raw                    value
	ok                     bool
	reason, host, checksum string
}

func readPONG(r *valueReader) (g pong, err error) {
	v, err := r.next()
	if err != nil {
		return g, fmt.Errorf("PONG: %w", err)
	}
	if v.kind != "array" || len(v.list) != 5 || v.list[0].text != "PONG" || v.list[1].kind != "bool" {
		return g, fmt.Errorf("no PONG: % x", clip(v.raw))
	}
	return pong{v, v.list[1].n == 1, v.list[2].text, v.list[3].text, v.list[4].text}, nil
}

// enter logs in.
func (l *login) enter(c io.ReadWriter) error {
	r := newValueReader(c)
	h, err := readHELO(r)
	if err != nil {
		return err
	}
	const salt = "000102030405060708090a0b0c0d0e0f"
	if _, err := c.Write(unhex(l.ping(&h, salt))); err != nil {
		return err
	}
	g, err := readPONG(r)
	switch {
	case err != nil:
		return err
	case !g.ok:
		return fmt.Errorf("refused: %s", g.reason)
	case g.checksum != digest(salt, g.host, h.nonce, l.key):
		return fmt.Errorf("a wrong digest in PONG: %q", g.checksum)
	case r.r.Buffered() > 0:
		return fmt.Errorf("%d bytes behind PONG", r.r.Buffered())
	}
	return nil
}
