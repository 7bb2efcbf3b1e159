// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"errors"
	"fmt"

	"github.com/spillwaylog/spillway/internal/urls"
)

// A Web is what the URL of a server of HTTP says of security.
type Web struct {
	server Server // of which only TLS is used
	token  secret
	kept   *kept[[sha256.Size]byte] // of the token; nil: there is none
}

// ReadWeb asks p for what it says of security. It touches no file; Open does.
func ReadWeb(u *urls.URL, p *urls.Params) (*Web, error) {
	w := &Web{server: Server{secure: u.Scheme == "https"}}
	tlsErr := w.server.readTLS(u, p)
	var err error
	w.token, err = readSecret(u, p, "token")
	return w, first(tlsErr, err)
}

// Guarded reports whether clients have to prove who they are.
func (w *Web) Guarded() bool {
	return w.token.given() || w.server.clientAuth == tls.RequireAndVerifyClientCert
}

// Open reads the files. From then on they are watched, when requests come.
func (w *Web) Open(r *Reports) (err error) {
	if err := w.server.Open(r); err != nil || !w.token.given() {
		return err
	}
	w.kept, err = keep(w.load, r)
	return err
}

func (w *Web) load(f *files) (sum [sha256.Size]byte, err error) {
	text, err := w.token.get(f)
	if err == nil && text == "" {
		err = fmt.Errorf("%s: the token is empty", w.token)
	}
	return sha256.Sum256([]byte(text)), err
}

// Reload reads the files now. Of what cannot be used the old version stays in force, and the error
// says so.
func (w *Web) Reload() error {
	err := w.server.Reload()
	if w.kept != nil {
		err = errors.Join(err, w.kept.reload())
	}
	return err
}

// TLS is what connections are to be; nil: plain.
func (w *Web) TLS() *tls.Config { return w.server.TLS() }

// Allows reports whether a token is the right one, or none is needed.
func (w *Web) Allows(token string) bool {
	if w.kept == nil {
		return true
	}
	sum := sha256.Sum256([]byte(token))
	return subtle.ConstantTimeCompare(sum[:], w.kept.get()[:]) == 1
}

// A WebClient is what the URL of a server of HTTP says to its clients.
type WebClient struct {
	client Client // of which only TLS is used
	token  secret
	kept   *kept[string] // the token; nil: there is none
}

// ReadWebClient asks p for what it says of security. It touches no file; Open does.
func ReadWebClient(u *urls.URL, p *urls.Params) (*WebClient, error) {
	w := &WebClient{client: Client{secure: u.Scheme == "https"}}
	tlsErr := w.client.readTLS(u, p)
	var err error
	w.token, err = readSecret(u, p, "token")
	return w, first(tlsErr, err)
}

// Open reads the files. From then on they are watched, when requests are made.
func (w *WebClient) Open(r *Reports) (err error) {
	if err := w.client.Open(r); err != nil || !w.token.given() {
		return err
	}
	w.kept, err = keep(w.token.get, r)
	return err
}

// TLS is what connections are to be, as it is now; nil: plain.
func (w *WebClient) TLS() *tls.Config {
	if w.client.tls == nil {
		return nil
	}
	return *w.client.tls.get()
}

// Token is the token as it is now; empty: there is none.
func (w *WebClient) Token() string {
	if w.kept == nil {
		return ""
	}
	return *w.kept.get()
}
