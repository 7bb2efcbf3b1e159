// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"crypto/tls"
	"errors"
	"fmt"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/urls"
)

// A Client is what the URL of a destination says of security, and what a program gives in code.
type Client struct {
	secure     bool // TLS
	ca         file
	cert, key  file
	serverName string
	insecure   bool

	sharedKey, password secret
	emptyKey            bool
	hostname, username  string
	noKeepalive         bool
	given               Values
	values              forward.Login // of given, or none

	tls   *kept[*tls.Config]    // nil: no TLS
	login *kept[*forward.Login] // nil: no handshake
}

// Values are what a program gives in code, where a URL names files. What is given here the URL must
// not give, too.
type Values struct {
	TLS   *tls.Config
	Login *forward.Login // nil: none
}

// TLSNames are the parameters that make a TLS configuration.
var TLSNames = []string{"ca", "cert", "key", "server_name", "insecure"}

// ReadClient asks p for what it says of security. It touches no file; Open does. v may be nil.
func ReadClient(u *urls.URL, p *urls.Params, v *Values) (*Client, error) {
	c := &Client{secure: u.Scheme == "forward+tls"}
	if v != nil {
		c.given = *v
		if v.Login != nil {
			c.values = *v.Login
		}
	}
	tlsErr := c.readTLS(u, p)
	var keyErr, passwordErr error
	c.sharedKey, keyErr = readSecret(u, p, "shared_key")
	c.password, passwordErr = readSecret(u, p, "password")
	c.emptyKey = p.Bool("empty_key", c.values.AllowEmptyKey && c.values.SharedKey == "")
	c.username = p.String("username", "")
	c.hostname = p.String("hostname", c.values.Hostname)
	c.noKeepalive = !p.Bool("keepalive", true)
	if err := first(tlsErr, keyErr, passwordErr); err != nil {
		return nil, err
	}
	hasKey := c.sharedKey.given() || c.values.SharedKey != ""
	var e error
	switch {
	case c.values.SharedKey != "" && c.sharedKey.given():
		e = u.Errorf("Options.Login.SharedKey and shared_key_file= or shared_key_env= say the same thing: give one")
	case c.values.Password != "" && c.password.given():
		e = u.Errorf("Options.Login.Password and password_file= or password_env= say the same thing: give one")
	case c.values.Username != "" && c.username != "":
		e = u.Errorf("Options.Login.Username and username= say the same thing: give one")
	case c.emptyKey && hasKey:
		e = u.Errorf("empty_key=true says that the shared key is empty, and another setting that it is not")
	}
	if e != nil {
		return nil, e
	}
	if c.username == "" {
		c.username = c.values.Username
	}
	hasPassword := c.password.given() || c.values.Password != ""
	switch {
	case (c.username != "") != hasPassword:
		e = u.Errorf("a user has a name and a password; one is missing")
	case c.username != "" && !c.handshake():
		e = u.Errorf("a user logs in in the handshake, which has a shared key, and there is none (empty_key=true makes a handshake with an empty one)")
	case c.hostname != "" && !c.handshake():
		e = u.Errorf("hostname= is sent in the handshake, which has a shared key, and there is none (empty_key=true makes a handshake with an empty one)")
	case c.given.Login != nil && !c.handshake():
		e = u.Errorf("Options.Login has no shared key, and the URL names none (AllowEmptyKey makes a handshake with an empty one)")
	}
	if e != nil {
		return nil, e
	}
	return c, nil
}

func (c *Client) readTLS(u *urls.URL, p *urls.Params) error {
	if !c.secure {
		if c.given.TLS != nil {
			return u.Errorf("Options.TLS belongs to forward+tls://")
		}
		return refuse(u, TLSNames...)
	}
	c.ca = filePath(p, "ca")
	c.cert, c.key = filePath(p, "cert"), filePath(p, "key")
	c.serverName = p.String("server_name", "")
	c.insecure = p.Bool("insecure", false)
	if c.given.TLS != nil {
		for _, name := range TLSNames {
			if u.Has(name) {
				return u.Errorf("Options.TLS says all of TLS, so %s= cannot: give one", name)
			}
		}
	}
	switch {
	case c.cert.given() != c.key.given():
		return u.Errorf("cert= and key= name the files of the client's certificate and its key; one is missing")
	case c.insecure && c.ca.given():
		return u.Errorf("insecure=true lets every certificate pass, and ca= says which are good: give one")
	}
	return nil
}

// handshake reports whether there is one.
func (c *Client) handshake() bool {
	return c.sharedKey.given() || c.values.SharedKey != "" || c.emptyKey
}

// Open reads the files. From now on they are watched, when connections are made.
func (c *Client) Open(r *Reports) (err error) {
	if c.secure {
		if c.tls, err = keep(c.loadTLS, r); err != nil {
			return err
		}
	}
	if c.handshake() {
		if c.login, err = keep(c.loadLogin, r); err != nil {
			return err
		}
	}
	return nil
}

// Reload is that of Server.
func (c *Client) Reload() error {
	var errs []error
	if c.tls != nil {
		errs = append(errs, c.tls.reload())
	}
	if c.login != nil {
		errs = append(errs, c.login.reload())
	}
	return errors.Join(errs...)
}

// GetTLS returns the function for Client.GetTLS of package forward: nil for connections without
// TLS.
func (c *Client) GetTLS() func() (*tls.Config, error) {
	if c.tls == nil {
		return nil
	}
	return func() (*tls.Config, error) { return *c.tls.get(), nil }
}

// GetLogin returns the function for Client.GetLogin of package forward: nil for connections without
// a handshake.
func (c *Client) GetLogin() func() (*forward.Login, error) {
	if c.login == nil {
		return nil
	}
	return func() (*forward.Login, error) { return *c.login.get(), nil }
}

// NoKeepalive says that a connection is for one chunk.
func (c *Client) NoKeepalive() bool { return c.noKeepalive }

var errInsecure = errors.New("insecure=true: any server's certificate passes, so anybody on the way can read what is sent")

func (c *Client) loadTLS(f *files) (*tls.Config, error) {
	if c.given.TLS != nil {
		return guarded(c.given.TLS), nil
	}
	if c.insecure {
		f.warn(errInsecure)
	}
	t, err := clientTLS(f, c.ca, c.cert, c.key, c.serverName)
	if err == nil {
		t.InsecureSkipVerify = c.insecure
	}
	return t, err
}

// clientTLS makes what a client has: each file may be missing.
func clientTLS(f *files, ca, cert, key file, serverName string) (*tls.Config, error) {
	t := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: serverName}
	var err error
	if ca.given() {
		if t.RootCAs, err = pool(f, ca); err != nil {
			return nil, err
		}
	}
	if cert.given() {
		pair, err := pair(f, cert, key)
		if err != nil {
			return nil, err
		}
		t.Certificates = []tls.Certificate{pair}
	}
	return t, nil
}

func (c *Client) loadLogin(f *files) (*forward.Login, error) {
	l := &forward.Login{
		Hostname:      c.hostname,
		SharedKey:     c.values.SharedKey,
		AllowEmptyKey: c.emptyKey,
		Username:      c.username,
		Password:      c.values.Password,
	}
	var err error
	if c.sharedKey.given() {
		if l.SharedKey, err = c.sharedKey.get(f); err != nil {
			return nil, err
		}
		if l.SharedKey == "" {
			return nil, fmt.Errorf("%s: the shared key is empty", c.sharedKey)
		}
	}
	if c.password.given() {
		if l.Password, err = c.password.get(f); err != nil {
			return nil, err
		}
		if l.Password == "" {
			return nil, fmt.Errorf("%s: the password is empty", c.password)
		}
	}
	return l, nil
}
