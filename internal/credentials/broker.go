// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"

	"github.com/spillwaylog/spillway/internal/urls"
)

// A Broker is what the URL of an output to brokers says of security: TLS, and a login by SASL.
type Broker struct {
	secure     bool // TLS
	ca         file
	cert, key  file
	serverName string

	mechanism string // None: there is no login
	username  string
	password  secret
	token     secret

	tls   *kept[*tls.Config]
	login *kept[string] // password or token
}

// Mechanisms of a login.
const (
	None        = "none"
	Plain       = "plain"
	ScramSHA256 = "scram-sha-256"
	ScramSHA512 = "scram-sha-512"
	OAuthBearer = "oauthbearer"
)

// ReadBroker asks p for what it says of security. It touches no file; Open does.
func ReadBroker(u *urls.URL, p *urls.Params) (*Broker, error) {
	b := &Broker{secure: p.Bool("tls", false)}
	b.ca, b.cert, b.key = filePath(p, "ca"), filePath(p, "cert"), filePath(p, "key_file")
	b.serverName = p.String("server_name", "")
	b.mechanism = p.Choice("sasl", None, Plain, ScramSHA256, ScramSHA512, OAuthBearer)
	b.username = p.String("username", "")
	var passwordErr, tokenErr error
	b.password, passwordErr = readSecret(u, p, "password")
	b.token, tokenErr = readSecret(u, p, "token")
	if err := first(passwordErr, tokenErr); err != nil {
		return nil, err
	}
	var e error
	switch {
	case !b.secure && (b.ca.given() || b.cert.given() || b.key.given() || b.serverName != ""):
		e = u.Errorf("ca, cert, key_file and server_name belong to tls=true")
	case b.cert.given() != b.key.given():
		e = u.Errorf("cert and key_file belong together")
	case b.mechanism != OAuthBearer && b.token.given():
		e = u.Errorf("token_file and token_env belong to sasl=oauthbearer")
	case b.mechanism == OAuthBearer && (b.username != "" || b.password.given() || !b.token.given()):
		e = u.Errorf("sasl=oauthbearer needs one of token_file and token_env, and no user or password")
	case b.mechanism == None && (b.username != "" || b.password.given()):
		e = u.Errorf("username, password_file and password_env belong to sasl=")
	case b.mechanism != None && b.mechanism != OAuthBearer && (b.username == "" || !b.password.given()):
		e = u.Errorf("sasl=%s needs username and one of password_file and password_env", b.mechanism)
	}
	if e != nil {
		return nil, e
	}
	return b, nil
}

// Open reads the files. From now on they are watched, when connections are made. An output that is
// opened again goes on with what it has.
func (b *Broker) Open(r *Reports) (err error) {
	if b.secure && b.tls == nil {
		if b.tls, err = keep(b.loadTLS, r); err != nil {
			return err
		}
	}
	if b.mechanism != None && b.login == nil {
		b.login, err = keep(b.loadLogin, r)
	}
	return err
}

func (b *Broker) loadTLS(f *files) (*tls.Config, error) {
	return clientTLS(f, b.ca, b.cert, b.key, b.serverName)
}

func (b *Broker) loadLogin(f *files) (string, error) {
	what := b.password
	if b.mechanism == OAuthBearer {
		what = b.token
	}
	text, err := what.get(f)
	if err == nil && text == "" {
		err = fmt.Errorf("%s: it is empty", what)
	}
	return text, err
}

// Mechanism is how to log in.
func (b *Broker) Mechanism() string { return b.mechanism }

// Login returns the user and the password as they are now, or the token, which has no user.
func (b *Broker) Login() (user, secret string) { return b.username, *b.login.get() }

// Dial connects to a broker. With TLS the name in its certificate has to be that of the host, or
// the one that the URL gives.
func (b *Broker) Dial(ctx context.Context, d *net.Dialer, network, address string) (net.Conn, error) {
	if b.tls == nil {
		return d.DialContext(ctx, network, address)
	}
	return (&tls.Dialer{NetDialer: d, Config: *b.tls.get()}).DialContext(ctx, network, address)
}
