// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/testcert"
	"github.com/spillwaylog/spillway/internal/urls"
)

func readClient(t testing.TB, text string, v *Values) (*Client, error) {
	t.Helper()
	u, err := urls.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	p := u.Params()
	c, err := ReadClient(u, p, v)
	if err == nil {
		err = p.Err()
	}
	return c, err
}

func TestReadClient(t *testing.T) {
	secure := &tls.Config{}
	for _, tt := range []struct {
		url    string
		values Values
		want   string
	}{
		{"forward://h", Values{}, ""},
		{
			"forward://h",
			Values{Login: &forward.Login{SharedKey: "topsecret", Username: "u", Password: "topsecret"}},
			"",
		},
		{"forward://h?username=u&shared_key_file=k", Values{Login: &forward.Login{Password: "topsecret"}}, ""},
		{"forward+tls://h", Values{TLS: secure, Login: &forward.Login{SharedKey: "topsecret"}}, ""},
		{"forward+tls://h?ca=ca&cert=c&key=k&server_name=n", Values{}, ""},
		{"forward://h?empty_key=true&username=u&password_env=P", Values{}, ""},
		{"forward://h", Values{TLS: secure}, "Options.TLS belongs to forward+tls://"},
		{"forward+unix:///s?insecure=true", Values{}, `"insecure" belongs to TLS`},
		{"forward+tls://h?server_name=n", Values{TLS: secure}, "Options.TLS says all of TLS, so server_name= cannot"},
		{"forward+tls://h?key=k", Values{}, "one is missing"},
		{
			"forward://h?shared_key_env=K",
			Values{Login: &forward.Login{SharedKey: "topsecret"}},
			"Options.Login.SharedKey and shared_key_file=",
		},
		{
			"forward://h?shared_key_file=k&username=u&password_file=p",
			Values{Login: &forward.Login{Password: "topsecret"}},
			"Options.Login.Password and password_file=",
		},
		{
			"forward://h?shared_key_file=k&username=u&password_file=p",
			Values{Login: &forward.Login{Username: "u"}},
			"Options.Login.Username and username=",
		},
		{
			"forward://h?empty_key=true",
			Values{Login: &forward.Login{SharedKey: "topsecret"}},
			"says that the shared key is empty",
		},
		{
			"forward://h",
			Values{Login: &forward.Login{Username: "u", SharedKey: "topsecret"}},
			"a user has a name and a password",
		},
		{
			"forward://h",
			Values{Login: &forward.Login{Password: "topsecret", SharedKey: "topsecret"}},
			"a user has a name and a password",
		},
		{"forward://h", Values{Login: &forward.Login{Username: "u", Password: "topsecret"}}, "there is none"},
		{"forward://h", Values{Login: &forward.Login{Hostname: "me"}}, "and there is none"},
		{"forward://h", Values{Login: &forward.Login{}}, "Options.Login has no shared key"},
		{"forward://h", Values{Login: &forward.Login{AllowEmptyKey: true}}, ""},
		{
			"forward://h?shared_key_env=K",
			Values{Login: &forward.Login{AllowEmptyKey: true}},
			"says that the shared key is empty",
		},
	} {
		if _, err := readClient(t, tt.url, &tt.values); !fits(err, tt.want) {
			t.Errorf("%s: %v, want %s", tt.url, err, tt.want)
		}
	}
}

func TestClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ca, other := testcert.New(t), testcert.New(t)
		at := newStation(t, ca)
		file := func(name, text string) string {
			save(t, filepath.Join(at.dir, name), text)
			return filepath.Join(at.dir, name)
		}
		at.copy(t, "ca", ca.File)
		var told reportLog
		c, err := readClient(t, fmt.Sprintf("forward+tls://h?ca=%s/ca&cert=%s&key=%s&server_name=n&hostname=me&username=u&keepalive=false&shared_key_file=%s&password_file=%s",
			at.dir, ca.Client.Cert, ca.Client.Key, file("shared", "topsecret1\n"), file("pass", "topsecret2\n")), nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Open(told.reports()); err != nil {
			t.Fatal(err)
		}
		config, err := c.GetTLS()()
		if err != nil || config.ServerName != "n" || !config.RootCAs.Equal(ca.Pool) || len(config.Certificates) != 1 ||
			config.InsecureSkipVerify || config.MinVersion != tls.VersionTLS12 {
			t.Errorf("%+v, %v", config, err)
		}
		l, err := c.GetLogin()()
		if err != nil || l.Hostname != "me" || l.SharedKey != "topsecret1" || l.Username != "u" ||
			l.Password != "topsecret2" || l.AllowEmptyKey || !c.NoKeepalive() {
			t.Errorf("%v, %v", l, err)
		}
		at.copy(t, "ca", other.File)
		file("shared", "topsecret3\n")
		next()
		if config, err = c.GetTLS()(); err != nil || !config.RootCAs.Equal(other.Pool) {
			t.Error("the authorities are the old ones", err)
		}
		if l, err = c.GetLogin()(); err != nil || l.SharedKey != "topsecret3" || l.Password != "topsecret2" {
			t.Error("the shared key is the old one", err)
		}
		told.want(t, 0, 2)
		file("shared", "\n")
		if err := c.Reload(); !fits(err, "the shared key is empty") {
			t.Error(err)
		}
		if l, err = c.GetLogin()(); err != nil || l.SharedKey != "topsecret3" {
			t.Error("the broken file is in force", err)
		}
	})
}

func TestClientValues(t *testing.T) {
	given := &tls.Config{ServerName: "given"}
	c, err := readClient(t, "forward+tls://h",
		&Values{TLS: given, Login: &forward.Login{SharedKey: "k", Username: "u", Password: "p"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Open(&Reports{}); err != nil {
		t.Fatal(err)
	}
	config, err := c.GetTLS()()
	if err != nil || config == given || config.ServerName != "given" {
		t.Error(config, err)
	}
	if l, err := c.GetLogin()(); err != nil || l.SharedKey != "k" || l.Username != "u" || l.Password != "p" {
		t.Error(l, err)
	}
	plain, err := readClient(t, "forward://h", nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := plain.Open(&Reports{}); err != nil || plain.GetTLS() != nil || plain.GetLogin() != nil ||
		plain.Reload() != nil {
		t.Error("a plain client has something to tell", err)
	}
}

func TestInsecureIsTold(t *testing.T) {
	var told reportLog
	c, err := readClient(t, "forward+tls://h?insecure=true", nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Open(told.reports()); err != nil {
		t.Fatal(err)
	}
	if len(told.warnings) != 1 || !strings.Contains(told.warnings[0], "any server's certificate passes") {
		t.Error(told.warnings)
	}
}

// TestGuarded: a function of the program's that panics fails its connection, not the program.
func TestGuarded(t *testing.T) {
	given := &tls.Config{
		VerifyPeerCertificate: func([][]byte, [][]*x509.Certificate) error { panic("topsecret") },
		VerifyConnection:      func(tls.ConnectionState) error { panic("topsecret") },
		GetClientCertificate:  func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { panic("topsecret") },
	}
	c := guarded(given)
	_, certErr := c.GetClientCertificate(nil)
	for name, err := range map[string]error{
		"VerifyPeerCertificate": c.VerifyPeerCertificate(nil, nil),
		"VerifyConnection":      c.VerifyConnection(tls.ConnectionState{}), "GetClientCertificate": certErr,
	} {
		if !fits(err, name+" panicked (string)") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if c := guarded(&tls.Config{}); c.VerifyConnection != nil || c.VerifyPeerCertificate != nil ||
		c.GetClientCertificate != nil {
		t.Error("there are functions where there were none")
	}
}
