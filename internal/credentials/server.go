// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/urls"
)

// A Server is what the URL of an input says of security.
type Server struct {
	secure     bool // TLS
	cert, key  file
	clientCA   file
	clientAuth tls.ClientAuthType

	sharedKey     secret
	emptyKey      bool
	usersFile     file
	clientsFile   file
	hostname      string
	denyAnonymous bool
	denyKeepalive bool

	tls      *kept[*tls.Config]       // nil: no TLS
	security *kept[*forward.Security] // nil: no handshake
}

// ReadServer asks p for what it says of security. It touches no file; Open does.
func ReadServer(u *urls.URL, p *urls.Params) (*Server, error) {
	s := &Server{secure: u.Scheme == "forward+tls"}
	tlsErr := s.readTLS(u, p)
	var keyErr error
	s.sharedKey, keyErr = readSecret(u, p, "shared_key")
	s.emptyKey = p.Bool("empty_key", false)
	s.usersFile = filePath(p, "users_file")
	s.clientsFile = filePath(p, "clients_file")
	s.denyAnonymous = !p.Bool("anonymous", true)
	s.denyKeepalive = !p.Bool("keepalive", true)
	s.hostname = p.String("hostname", "")
	if err := first(tlsErr, keyErr); err != nil {
		return nil, err
	}
	var e error
	switch {
	case s.emptyKey && s.sharedKey.given():
		e = u.Errorf("empty_key=true says that the shared key is empty, and another parameter that it is not")
	case !s.handshake() && (s.hostname != "" || s.denyKeepalive || s.usersFile.given() || s.denyAnonymous):
		e = u.Errorf("hostname=, keepalive=, users_file= and anonymous= belong to the handshake, and without shared_key_file=, shared_key_env= or clients_file= " +
			"there is none (empty_key=true makes one with an empty key)")
	case s.denyAnonymous && !s.clientsFile.given():
		e = u.Errorf("anonymous=false refuses clients that no rule of clients_file= fits, and there is none")
	}
	if e != nil {
		return nil, e
	}
	return s, nil
}

// ReadTLS is ReadServer for inputs of another protocol over TLS, which has no handshake of its own.
func ReadTLS(u *urls.URL, p *urls.Params) (*Server, error) {
	s := &Server{secure: true}
	if err := s.readTLS(u, p); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *Server) readTLS(u *urls.URL, p *urls.Params) error {
	if !s.secure {
		return refuse(u, "cert", "key", "client_ca", "client_auth")
	}
	s.cert, s.key = filePath(p, "cert"), filePath(p, "key")
	s.clientCA = filePath(p, "client_ca")
	how := p.String("client_auth", "")
	switch how {
	case "none", "":
		if s.clientCA.given() {
			s.clientAuth = tls.RequireAndVerifyClientCert
		}
	case "request":
		s.clientAuth = tls.VerifyClientCertIfGiven
	case "require":
		s.clientAuth = tls.RequireAndVerifyClientCert
	default:
		return u.Errorf("parameter %q: %q is not one of none, request, require", "client_auth", how)
	}
	switch {
	case !s.cert.given() || !s.key.given():
		return u.Errorf("cert= and key= name the files of the server's certificate and its key; one is missing")
	case how == "none" && s.clientCA.given():
		return u.Errorf("client_ca= says which certificates of clients are good, and client_auth=none that none is asked for")
	case s.clientAuth != tls.NoClientCert && !s.clientCA.given():
		return u.Errorf("client_auth=%s asks clients for certificates, and client_ca=, which says which are good, is missing", how)
	}
	return nil
}

// refuse is an error if one of the parameters is given to a URL without TLS.
func refuse(u *urls.URL, names ...string) error {
	secure := "forward+tls://"
	if u.Scheme == "http" {
		secure = "https://"
	}
	for _, name := range names {
		if u.Has(name) {
			return u.ErrorAbout(name, "parameter %q belongs to TLS: %s", name, secure)
		}
	}
	return nil
}

// handshake reports whether clients have to know a shared key.
func (s *Server) handshake() bool { return s.sharedKey.given() || s.emptyKey || s.clientsFile.given() }

// Users reports whether clients have to log in as users.
func (s *Server) Users() bool { return s.usersFile.given() }

// Certificates reports whether clients are asked for certificates.
func (s *Server) Certificates() bool { return s.clientAuth != tls.NoClientCert }

// Open reads the files. From now on they are watched, when connections come.
func (s *Server) Open(r *Reports) (err error) {
	if s.secure {
		if s.tls, err = keep(s.loadTLS, r); err != nil {
			return err
		}
	}
	if s.handshake() {
		if s.security, err = keep(s.loadSecurity, r); err != nil {
			return err
		}
	}
	return nil
}

// Reload reads the files now, whether they have changed or not. Of what cannot be used the old
// version stays in force, and the error says so.
func (s *Server) Reload() error {
	var errs []error
	if s.tls != nil {
		errs = append(errs, s.tls.reload())
	}
	if s.security != nil {
		errs = append(errs, s.security.reload())
	}
	return errors.Join(errs...)
}

// TLS is what connections are to be: each gets what is in force when it comes; nil: plain.
func (s *Server) TLS() *tls.Config {
	if s.tls == nil {
		return nil
	}
	return &tls.Config{
		MinVersion:             tls.VersionTLS12,
		SessionTicketsDisabled: true, // see loadTLS
		GetConfigForClient:     func(*tls.ClientHelloInfo) (*tls.Config, error) { return *s.tls.get(), nil },
	}
}

// Recheck tells why a client with these certificates, its own first, would not be let in now. One
// without any would: whether clients are asked is said by the URL, not by a file. It looks at no
// file, so Reports.Renewed may call it. Connections of Forward are rechecked by forward.Server.
func (s *Server) Recheck(shown []*x509.Certificate) error {
	if len(shown) == 0 {
		return nil
	}
	how := x509.VerifyOptions{
		Roots: (*s.tls.value.Load()).ClientCAs, Intermediates: x509.NewCertPool(),
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	for _, cert := range shown[1:] {
		how.Intermediates.AddCert(cert)
	}
	if _, err := shown[0].Verify(how); err != nil {
		return fmt.Errorf("its certificate is good no more: %w", err)
	}
	return nil
}

// Apply makes e ask for what is in force.
func (s *Server) Apply(e *forward.Endpoint) {
	e.TLS = s.TLS()
	if s.security != nil {
		e.GetSecurity = func(net.Addr) *forward.Security { return *s.security.get() }
	}
}

func (s *Server) loadTLS(f *files) (*tls.Config, error) {
	cert, err := pair(f, s.cert, s.key)
	if err != nil {
		return nil, err
	}
	c := &tls.Config{
		MinVersion:   tls.VersionTLS12,
		Certificates: []tls.Certificate{cert},
		ClientAuth:   s.clientAuth,
		// A session that was begun under an old version of the files must not be resumed under a
		// new one, which may trust fewer. Connections of senders are long, so this costs little.
		SessionTicketsDisabled: true,
	}
	if s.clientCA.given() {
		if c.ClientCAs, err = pool(f, s.clientCA); err != nil {
			return nil, err
		}
	}
	return c, nil
}

func (s *Server) loadSecurity(f *files) (*forward.Security, error) {
	c := &forward.Security{
		Hostname:      s.hostname,
		AllowEmptyKey: s.emptyKey,
		DenyAnonymous: s.denyAnonymous,
		DenyKeepalive: s.denyKeepalive,
	}
	if s.sharedKey.given() {
		var err error
		if c.SharedKey, err = s.sharedKey.get(f); err != nil {
			return nil, err
		}
		if c.SharedKey == "" {
			return nil, fmt.Errorf("%s: the shared key is empty", s.sharedKey)
		}
	}
	if s.usersFile.given() {
		data, err := f.read(s.usersFile, maxList, true)
		if err != nil {
			return nil, err
		}
		if c.Users, err = parseUsers(data); err != nil {
			return nil, fmt.Errorf("%s: %w", s.usersFile, err)
		}
	}
	if s.clientsFile.given() {
		data, err := f.read(s.clientsFile, maxList, false)
		if err != nil {
			return nil, err
		}
		rules, err := parseClients(data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.clientsFile, err)
		}
		if c.Clients, err = clientRules(rules, s.clientsFile, c.Users, f); err != nil {
			return nil, err
		}
		if !s.sharedKey.given() && !s.emptyKey {
			for i := range c.Clients {
				if c.Clients[i].SharedKey == "" {
					return nil, fmt.Errorf("%s: line %d: it has no key_file= or key_env=, and the input has no shared key of its own", s.clientsFile, rules[i].line)
				}
			}
			if !s.denyAnonymous {
				return nil, fmt.Errorf("%s: who fits no rule would have no key: give the input shared_key_file=, or anonymous=false", s.clientsFile)
			}
		}
	}
	if err := c.Check(); err != nil {
		return nil, err
	}
	return c, nil
}

// first returns the first error.
func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
