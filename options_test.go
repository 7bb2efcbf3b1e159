// SPDX-License-Identifier: Apache-2.0

package spillway

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/testcert"
)

func TestOptionsHideSecrets(t *testing.T) {
	o := Options{
		Tag: "seen", Login: &forward.Login{SharedKey: "topsecret1", Username: "web", Password: "topsecret2"},
		TLS: &tls.Config{ServerName: "x"},
	}
	var logged bytes.Buffer
	slog.New(slog.NewTextHandler(&logged, nil)).Info("m", "o", o, "p", &o)
	for _, text := range []string{
		fmt.Sprint(o), fmt.Sprint(&o), fmt.Sprintf("%v %+v %#v", o, o, o), fmt.Sprintf("%+v", struct{ O *Options }{&o}),
		logged.String(),
	} {
		if strings.Contains(text, "topsecret") || strings.Contains(text, fmt.Sprintf("%x", "topsecret")) {
			t.Errorf("a secret is shown: %s", text)
		}
	}
	if text := fmt.Sprintf("%+v", o); !strings.Contains(text, "Tag:seen") ||
		!strings.Contains(text, `Username: "web"`) {
		t.Error(text)
	}
	if o.Login.SharedKey != "topsecret1" || o.Login.Password != "topsecret2" {
		t.Error("the options have changed")
	}
}

// TestSecureOptions: what a program gives and what the URL names must not meet, and neither makes a
// place another one.
func TestSecureOptions(t *testing.T) {
	for _, tt := range []struct {
		url  string
		o    Options
		want string // what the error has in it, or the place
	}{
		{"forward://h", Options{Login: &forward.Login{SharedKey: "topsecret"}}, "forward://h:24224"},
		{"forward://h?shared_key_file=a", Options{}, "forward://h:24224"},
		{
			"forward+tls://h?ca=ca&shared_key_env=A",
			Options{Login: &forward.Login{Username: "u", Password: "topsecret"}},
			"forward+tls://h:24224",
		},
		{"forward+tls://h", Options{TLS: &tls.Config{}}, "forward+tls://h:24224"},
		{"forward+tls://h?ca=ca", Options{TLS: &tls.Config{}}, "Options.TLS says all of TLS"},
		{"forward://h", Options{TLS: &tls.Config{}}, "Options.TLS belongs to forward+tls://"},
		{
			"forward://h?shared_key_file=a",
			Options{Login: &forward.Login{SharedKey: "topsecret"}},
			"Options.Login.SharedKey and shared_key_file=",
		},
		{
			"forward://h",
			Options{Login: &forward.Login{SharedKey: "topsecret", Password: "topsecret"}},
			"a user has a name and a password",
		},
		{"stdout:", Options{Login: &forward.Login{SharedKey: "topsecret"}}, "belong to Forward servers"},
		{"file:///x", Options{TLS: &tls.Config{}}, "belong to Forward servers"},
	} {
		p, err := planDestination(tt.url, &tt.o)
		switch {
		case err == nil && p.Place != tt.want:
			t.Errorf("%s: place %s, want %s", tt.url, p.Place, tt.want)
		case err != nil && (!strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "topsecret")):
			t.Errorf("%s: %v, want %s", tt.url, err, tt.want)
		}
	}
	missing := filepath.Join(t.TempDir(), "key")
	if l, err := Open("forward://127.0.0.1:1?shared_key_file="+missing, &Options{Shm: noShm}); err == nil ||
		!strings.Contains(err.Error(), missing) {
		t.Error(l, err)
	}
}

// TestSecureDelivery: chunks go over TLS with a login, from files, and from values over connections
// that Options.Dial makes.
func TestSecureDelivery(t *testing.T) {
	ca := testcert.New(t)
	s := serveChunks(t, &forward.Endpoint{
		TLS: &tls.Config{
			Certificates: []tls.Certificate{ca.Server.TLS}, ClientCAs: ca.Pool,
			ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS12,
		},
		Security: &forward.Security{
			Hostname: "server", SharedKey: "topsecret1",
			Users: map[string]string{"web": "topsecret2"},
		},
	})
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	url := "forward+tls://" + s.addr
	dialed := make(chan struct{}, 100)
	for name, tt := range map[string]struct {
		query string
		o     Options
	}{
		"files": {"?ca=" + ca.File + "&cert=" + ca.Client.Cert + "&key=" + ca.Client.Key +
			"&username=web&shared_key_file=" + file("key", "topsecret1\n") + "&password_file=" +
			file("pw", "topsecret2\n"), Options{}},
		"values": {"?compress=gzip", Options{
			TLS: &tls.Config{
				RootCAs: ca.Pool, Certificates: []tls.Certificate{ca.Client.TLS},
				MinVersion: tls.VersionTLS12,
			},
			Login: &forward.Login{SharedKey: "topsecret1", Username: "web", Password: "topsecret2"},
			Dial:  dialTold(dialed),
		}},
	} {
		o := tt.o
		o.Shm, o.Tag = noShm, name
		var said []string
		o.Diagnostics = func(err error) { said = append(said, err.Error()) }
		l, err := Open(url+tt.query, &o)
		if err != nil {
			t.Fatal(err)
		}
		l.Info("m")
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
		if err := l.Close(ctx); err != nil {
			t.Errorf("%s: %v %q", name, err, said)
		}
		cancel()
		if c := <-s.got; c.tag != name || c.user != "web" || !c.tls {
			t.Errorf("%s: %+v", name, c)
		}
	}
	if len(dialed) != 1 {
		t.Errorf("Dial was called %d times", len(dialed))
	}

	// Who is denied says so, with the server's name and without the key, and keeps what it has.
	said := make(chan string, 100)
	l, err := Open(url+"?ca="+ca.File+"&cert="+ca.Client.Cert+"&key="+ca.Client.Key, &Options{
		Shm: noShm, Login: &forward.Login{SharedKey: "topsecret-wrong", Username: "web", Password: "topsecret2"},
		Diagnostics: func(err error) {
			select {
			case said <- err.Error():
			default:
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	l.Info("m")
	if text := <-said; !strings.Contains(text, s.addr) || !strings.Contains(text, "shared key") ||
		strings.Contains(text, "topsecret") {
		t.Error(text)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := l.Close(ctx); err == nil || strings.Contains(fmt.Sprintf("%v %+v", err, l.Stats()), "topsecret") {
		t.Error(err)
	}
}

// A taken chunk, and who sent it.
type taken struct {
	tag, user string
	tls       bool
}

// takes is a server that tells what it takes.
type takes struct {
	addr string
	got  chan taken
}

func serveChunks(t *testing.T, e *forward.Endpoint) *takes {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &takes{addr: l.Addr().String(), got: make(chan taken, 100)}
	server := &forward.Server{Handler: forward.HandlerFunc(func(ctx context.Context, c *forward.Chunk) error {
		sender := forward.SenderOf(ctx)
		s.got <- taken{c.Tag, sender.User, sender.TLS != nil}
		return nil
	})}
	served := make(chan error, 1)
	go func() { served <- server.ServeEndpoint(l, e) }()
	t.Cleanup(func() {
		_ = server.Close()
		<-served
	})
	return s
}

// dialTold is a Dial that tells of each call.
func dialTold(told chan<- struct{}) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		told <- struct{}{}
		return new(net.Dialer).DialContext(ctx, network, address)
	}
}
