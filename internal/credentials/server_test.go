// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/testcert"
	"github.com/spillwaylog/spillway/internal/urls"
)

func readServer(t testing.TB, text string) (*Server, error) {
	t.Helper()
	u, err := urls.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	p := u.Params()
	s, err := ReadServer(u, p)
	if err == nil {
		err = p.Err()
	}
	return s, err
}

func TestReadServer(t *testing.T) {
	for _, tt := range []struct{ url, want string }{ // what the error has in it, or nothing
		{"forward://h", ""},
		{"forward://h?shared_key_file=k&users_file=u&clients_file=c&anonymous=false&keepalive=false&hostname=me", ""},
		{"forward+unix:///s?shared_key_env=K", ""},
		{"forward://h?empty_key=true&users_file=u", ""},
		{"forward://h?clients_file=c", ""},
		{"forward+tls://h?cert=c&key=k", ""},
		{"forward+tls://h?cert=c&key=k&client_auth=none", ""},
		{"forward+tls://h?cert=c&key=k&client_ca=ca", ""},
		{"forward+tls://h?cert=c&key=k&client_ca=ca&client_auth=request", ""},
		{"forward+tls://h", "one is missing"},
		{"forward+tls://h?cert=c", "one is missing"},
		{"forward+tls://h?cert=c&key=k&client_ca=ca&client_auth=none", "client_auth=none that none is asked for"},
		{"forward+tls://h?cert=c&key=k&client_auth=require", "client_ca=, which says which are good, is missing"},
		{"forward+tls://h?cert=c&key=k&client_auth=maybe", `"maybe" is not one of none, request, require`},
		{"forward://h?cert=c", `"cert" belongs to TLS`},
		{"forward://h?shared_key_file=k&shared_key_env=K", "say the same thing"},
		{"forward://h?shared_key_env=topsecret!", "is no name of an environment variable"},
		{"forward://h?shared_key=topsecret", "unknown parameter"},
		{"forward://h?key=topsecret", `"key" belongs to TLS`},
		{"forward://h?psk=topsecret", `unknown parameter "psk"`},
		{"forward://h?shared_key_file=k&empty_key=true", "says that the shared key is empty"},
		{"forward://h?users_file=u", "belong to the handshake"},
		{"forward://h?hostname=h", "belong to the handshake"},
		{"forward://h?keepalive=false", "belong to the handshake"},
		{"forward://h?shared_key_file=k&anonymous=false", "there is none"},
		{"forward://h?keepalive=maybe&shared_key_file=k", "true or false"},
	} {
		if _, err := readServer(t, tt.url); !fits(err, tt.want) {
			t.Errorf("%s: %v, want %s", tt.url, err, tt.want)
		}
	}
}

func TestOpenServer(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	save(t, path("key"), "topsecret\n")
	save(t, path("empty"), "\n")
	save(t, path("users"), "web:topsecret\n")
	save(t, path("nobody"), "# web:topsecret\n")
	save(t, path("rules"), "host=a users=web\n")
	save(t, path("keyed"), "host=a key_file=key\n")
	save(t, path("badkey"), "host=a key_file=none\n")
	t.Setenv("CREDENTIALS_TEST_KEY", "topsecret")
	for _, tt := range []struct{ query, want string }{
		{"shared_key_file=key&users_file=users&clients_file=rules", ""},
		{"shared_key_env=CREDENTIALS_TEST_KEY&clients_file=keyed&anonymous=false", ""},
		{"clients_file=keyed&anonymous=false", ""},
		{"empty_key=true&users_file=users", ""},
		{"empty_key=true&clients_file=keyed", ""},
		{"shared_key_file=none", "none: no such file"},
		{"shared_key_file=empty", "the shared key is empty"},
		{"shared_key_file=users&users_file=key", "line 1: there is no colon"},
		{"shared_key_file=key&users_file=nobody", "there is no user in it"},
		{"shared_key_file=key&clients_file=users", "line 1: a rule is made of words"},
		{"shared_key_file=key&clients_file=rules", "users= needs users_file="},
		{"shared_key_file=key&clients_file=badkey", "no such file"},
		{"users_file=users&clients_file=rules", "it has no key_file= or key_env="},
		{"clients_file=keyed", "who fits no rule would have no key"},
	} {
		query := tt.query
		for _, name := range []string{"shared_key_file=", "users_file=", "clients_file="} {
			query = strings.Replace(query, name, name+dir+string(filepath.Separator), 1)
		}
		s, err := readServer(t, "forward://h?"+query)
		if err != nil {
			t.Errorf("%s: %v", tt.query, err)
			continue
		}
		err = s.Open(&Reports{})
		if !fits(err, tt.want) {
			t.Errorf("%s: %v, want %s", tt.query, err, tt.want)
		}
		if err == nil {
			var e forward.Endpoint
			s.Apply(&e)
			if sec := e.GetSecurity(&net.TCPAddr{}); sec == nil || sec.Check() != nil || e.TLS != nil ||
				e.Security != nil {
				t.Errorf("%s: %v", tt.query, sec)
			} else if text := fmt.Sprintf("%v %+v %#v %v", sec, sec, sec, s.Reload()); strings.Contains(text,
				"topsecret") {
				t.Errorf("%s: a secret is printed: %s", tt.query, text)
			}
		}
	}
}

// A station is a folder with the certificate and key that a server has now.
type station struct {
	dir string
	url string
}

func newStation(t testing.TB, ca *testcert.CA) *station {
	dir := t.TempDir()
	s := &station{dir: dir, url: "forward+tls://h?cert=" + filepath.Join(dir, "cert") + "&key=" +
		filepath.Join(dir, "key")}
	s.copy(t, "cert", ca.Server.Cert)
	s.copy(t, "key", ca.Server.Key)
	return s
}

// copy makes name what another file is. Its time is that of the bubble.
func (s *station) copy(t testing.TB, name, from string) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	save(t, filepath.Join(s.dir, name), string(data))
	if err := os.Chtimes(filepath.Join(s.dir, name), time.Time{}, time.Now()); err != nil {
		t.Fatal(err)
	}
}

// serves returns whether a client that trusts ca connects, with a certificate of its own or
// without.
func serves(t testing.TB, e *forward.Endpoint, ca *testcert.CA, own ...*testcert.Pair) (*testcert.Pair, error) {
	t.Helper()
	a, b := net.Pipe()
	server := tls.Server(a, e.TLS)
	c := &tls.Config{RootCAs: ca.Pool, ServerName: "localhost", MinVersion: tls.VersionTLS12}
	for _, p := range own {
		c.Certificates = append(c.Certificates, p.TLS)
	}
	client := tls.Client(b, c)
	result := make(chan error, 1)
	go func() {
		err := server.Handshake()
		if err == nil {
			_, err = server.Write([]byte("x"))
		}
		a.Close()
		result <- err
	}()
	_, err := client.Read(make([]byte, 1))
	b.Close()
	if serverErr := <-result; err == nil {
		err = serverErr
	}
	if err != nil {
		return nil, err
	}
	return &testcert.Pair{TLS: tls.Certificate{Leaf: client.ConnectionState().PeerCertificates[0]}}, nil
}

func wantLeaf(t testing.TB, e *forward.Endpoint, ca *testcert.CA, want *testcert.Pair) {
	t.Helper()
	got, err := serves(t, e, ca)
	if err != nil {
		t.Error(err)
	} else if !got.TLS.Leaf.Equal(want.TLS.Leaf) {
		t.Errorf("the server shows certificate %v, want %v", got.TLS.Leaf.SerialNumber, want.TLS.Leaf.SerialNumber)
	}
}

// TestHalfPair exchanges certificate and key one after the other: at no time is a connection
// refused.
func TestHalfPair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ca := testcert.New(t)
		renewed := ca.Issue(t, &testcert.Options{Hosts: []string{"localhost"}})
		at := newStation(t, ca)
		var told reportLog
		s, err := readServer(t, at.url)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Open(told.reports()); err != nil {
			t.Fatal(err)
		}
		var e forward.Endpoint
		s.Apply(&e)
		next()
		wantLeaf(t, &e, ca, ca.Server)
		at.copy(t, "cert", renewed.Cert)
		for range 2 {
			next()
			wantLeaf(t, &e, ca, ca.Server)
		}
		told.want(t, 1, 0) // half is there, and stays so
		if !strings.Contains(told.warnings[0], filepath.Join(at.dir, "key")) {
			t.Error(told.warnings)
		}
		at.copy(t, "key", renewed.Key)
		next()
		wantLeaf(t, &e, ca, renewed)
		told.want(t, 1, 2)

		told = reportLog{}
		at.copy(t, "key", ca.Server.Key)
		next()
		wantLeaf(t, &e, ca, renewed)
		at.copy(t, "cert", ca.Server.Cert)
		next()
		wantLeaf(t, &e, ca, ca.Server)
		told.want(t, 0, 2) // the other half was there in time
	})
}

// TestClientCA: who is vouched for changes with the file, also for a client that has connected
// before.
func TestClientCA(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ca, other := testcert.New(t), testcert.New(t)
		at := newStation(t, ca)
		at.copy(t, "clients", ca.File)
		for _, how := range []string{"require", "request"} {
			at.copy(t, "clients", ca.File)
			s, err := readServer(t, at.url+"&client_ca="+filepath.Join(at.dir, "clients")+"&client_auth="+how)
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Open(&Reports{}); err != nil {
				t.Fatal(err)
			}
			var e forward.Endpoint
			s.Apply(&e)
			check := func(what string, good bool, own ...*testcert.Pair) {
				t.Helper()
				if _, err := serves(t, &e, ca, own...); (err == nil) != good {
					t.Errorf("%s, %s: %v", how, what, err)
				}
			}
			check("its own", true, ca.Client)
			check("another one's", false, other.Client)
			check("none", how == "request")
			at.copy(t, "clients", other.File)
			next()
			check("another one's", true, other.Client)
			check("no longer its own", false, ca.Client)
			at.copy(t, "clients", at.dir+"/key") // no certificate in it
			next()
			check("another one's", true, other.Client)
		}
	})
}

func TestOldCertificateIsTold(t *testing.T) {
	ca := testcert.New(t)
	late := ca.Issue(t, &testcert.Options{Hosts: []string{"localhost"}, NotAfter: time.Now().Add(-time.Hour)})
	early := ca.Issue(t, &testcert.Options{Hosts: []string{"localhost"}, NotBefore: time.Now().Add(time.Hour)})
	for want, p := range map[string]*testcert.Pair{"has expired": late, "is not valid before": early} {
		s, err := readServer(t, "forward+tls://h?cert="+p.Cert+"&key="+p.Key)
		if err != nil {
			t.Fatal(err)
		}
		var told reportLog
		if err := s.Open(told.reports()); err != nil {
			t.Fatal(err)
		}
		if len(told.warnings) != 1 || !strings.Contains(told.warnings[0], want) {
			t.Errorf("%s: %q", want, told.warnings)
		}
	}
}

// TestRecheck: of TLS alone, a certificate is good as long as what is in force says so.
func TestRecheck(t *testing.T) {
	ca, next := testcert.New(t), testcert.New(t)
	at := newStation(t, ca)
	at.copy(t, "ca", ca.File)
	secure := "syslog" + strings.TrimPrefix(at.url, "forward") + "&client_ca=" + filepath.Join(at.dir, "ca")
	u, err := urls.Parse(secure, "syslog+tls")
	if err != nil {
		t.Fatal(err)
	}
	s, err := ReadTLS(u, u.Params())
	if err != nil || !s.Certificates() {
		t.Fatal(err)
	}
	good, late := ca.Client.TLS.Leaf, ca.Issue(t, &testcert.Options{NotAfter: time.Now().Add(-time.Hour)}).TLS.Leaf
	want := func(cert *x509.Certificate, text string) {
		t.Helper()
		if err := s.Recheck([]*x509.Certificate{cert}); !fits(err, text) {
			t.Errorf("%v, want %q", err, text)
		}
	}
	renewed := 0
	err = s.Open(&Reports{Renewed: func([]string) { renewed++; want(good, "its certificate is good no more") }})
	if err != nil {
		t.Fatal(err)
	}
	want(good, "")
	want(late, "expired")
	want(next.Client.TLS.Leaf, "unknown authority")
	if err := s.Recheck(nil); err != nil {
		t.Error(err)
	}
	at.copy(t, "ca", next.File)
	if err := s.Reload(); err != nil || renewed != 1 {
		t.Error(err, renewed)
	}
	want(next.Client.TLS.Leaf, "")
}
