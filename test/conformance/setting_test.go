// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"crypto/tls"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"github.com/spillwaylog/spillway/internal/testcert"
)

// The limits of the setting "limits". Fluentd's own tests have a decompression limit of 5 kB.
const (
	smallChunk    = 1 << 20
	smallUnpacked = 5 << 10
)

// What the servers with a handshake know.
const (
	theKey      = "secret"
	theHost     = "server.example"
	theUser     = "sender"
	thePassword = "pw"
)

var journaled = []string{"--ack", "journaled"}

// settings are how this repository's server is started for the tests.
var settings = map[string]func(*probe, testing.TB) *setting{
	"plain": func(*probe, testing.TB) *setting { return &setting{args: journaled} },
	"limits": func(*probe, testing.TB) *setting {
		return &setting{
			args:   append(journaled, "--max-chunk", "1MiB", "--max-unpacked", "5KiB"),
			server: server{maxChunk: smallChunk, maxUnpacked: smallUnpacked},
		}
	},
	"refuse invalid": func(*probe, testing.TB) *setting {
		return &setting{args: append(journaled,
			"--refuse-invalid")}
	},
	"tls":         func(p *probe, t testing.TB) *setting { return overTLS(p, t, "none") },
	"tls request": func(p *probe, t testing.TB) *setting { return overTLS(p, t, "request") },
	"tls require": func(p *probe, t testing.TB) *setting { return overTLS(p, t, "require") },
	"tls reload":  func(p *probe, t testing.TB) *setting { return overTLS(p, t, "none") },
	"key":         func(p *probe, t testing.TB) *setting { return withKey(p, t, nil, "", "") },
	"login": func(p *probe, t testing.TB) *setting {
		return withKey(p, t, nil, "", theUser+":"+thePassword+"\nother:pw:2\n")
	},
	"no keepalive": func(p *probe, t testing.TB) *setting {
		return withKey(p, t, url.Values{"keepalive": {"false"}}, "", "")
	},
	"clients": func(p *probe, t testing.TB) *setting {
		return withKey(p, t, nil, "host=special.example key_file=special.key\n"+
			"host=narrow.example users=other\n"+
			"network=192.0.2.0/24 key_file=special.key\n"+
			"host=local.example network=127.0.0.0/8 key_file=special.key\n"+
			"host=local.example\n", theUser+":"+thePassword+"\nother:pw:2\n")
	},
	"known clients": func(p *probe, t testing.TB) *setting {
		return withKey(p, t, url.Values{"anonymous": {"false"}}, "host=client.example\n", "")
	},
	"empty key": func(*probe, testing.TB) *setting {
		return &setting{
			args: journaled, query: "empty_key=true&hostname=" + theHost,
			server: server{login: &login{host: "client.example"}},
		}
	},
	"forced tag": func(*probe, testing.TB) *setting { return &setting{args: journaled, query: "tag=forced"} },
	"tag prefix": func(*probe, testing.TB) *setting { return &setting{args: journaled, query: "tag_prefix=before"} },
	"source": func(p *probe, t testing.TB) *setting {
		set := withKey(p, t, url.Values{"address_key": {"addr"}, "host_key": {"host"}, "user_key": {"user"}}, "",
			theUser+":"+thePassword+"\n")
		set.server.login.user, set.server.login.password = theUser, thePassword
		return set
	},
}

// overTLS has certificates, which may be changed.
func overTLS(p *probe, t testing.TB, clients string) *setting {
	p.Helper()
	ca := testcert.New(t)
	dir := t.TempDir()
	query := url.Values{"cert": {filepath.Join(dir, "cert.pem")}, "key": {filepath.Join(dir, "key.pem")}}
	if clients != "none" {
		query["client_auth"], query["client_ca"] = []string{clients}, []string{ca.File}
	}
	for from, to := range map[string]string{ca.Server.Cert: "cert.pem", ca.Server.Key: "key.pem"} {
		b, err := os.ReadFile(from)
		p.must(err)
		p.must(os.WriteFile(filepath.Join(dir, to), b, 0o600))
	}
	pairs := map[string]*testcert.Pair{"client": ca.Client, "other": testcert.New(t).Client}
	return &setting{
		scheme: "forward+tls", query: query.Encode(), args: journaled, dir: dir,
		server: server{
			dir: dir, ca: ca, pairs: pairs,
			tls: &tls.Config{
				RootCAs: ca.Pool, ServerName: "localhost", MinVersion: tls.VersionTLS12,
				Certificates: []tls.Certificate{ca.Client.TLS},
			},
		},
	}
}

// withKey has a shared key, and perhaps rules for clients, and users.
func withKey(p *probe, t testing.TB, query url.Values, clients, users string) *setting {
	p.Helper()
	dir := t.TempDir()
	if query == nil {
		query = url.Values{}
	}
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		p.must(os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	query.Set("hostname", theHost)
	query.Set("shared_key_file", file("shared.key", theKey+"\n"))
	set := &setting{args: journaled, dir: dir, server: server{login: &login{host: "client.example", key: theKey}}}
	if clients != "" {
		file("special.key", "special\n")
		query.Set("clients_file", file("clients", clients))
	}
	if users != "" {
		query.Set("users_file", file("users", users))
		set.server.login.user, set.server.login.password = theUser, thePassword
	}
	set.query = query.Encode()
	return set
}
