// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"path/filepath"
	"testing"
	"testing/synctest"

	"github.com/spillwaylog/spillway/internal/urls"
)

func readBroker(t testing.TB, query string) (*Broker, error) {
	t.Helper()
	u, err := urls.Parse("kafka://b1/t?"+query, "kafka")
	if err != nil {
		t.Fatal(err)
	}
	p := u.Params()
	b, err := ReadBroker(u, p)
	if err == nil {
		err = p.Err()
	}
	return b, err
}

func TestReadBroker(t *testing.T) {
	for query, want := range map[string]string{
		"": "", "tls=true": "", "tls=true&ca=c&cert=c&key_file=k&server_name=n": "",
		"sasl=plain&username=u&password_file=f": "", "sasl=scram-sha-512&username=u&password_env=E": "",
		"sasl=oauthbearer&token_env=E": "",
		"cert=c&key_file=k":            "belong to tls=true",
		"tls=true&key_file=k":          "belong together",
		"sasl=gssapi":                  "sasl",
		"sasl=plain&password_env=E":    "needs username",
		"sasl=plain&username=u&password_env=E&password_file=f": "give one",
		"username=u": "belong to sasl=",
		"sasl=oauthbearer&username=u&token_env=E":                  "no user",
		"sasl=oauthbearer":                                         "token_file",
		"sasl=scram-sha-256&username=u&password_env=E&token_env=E": "belong to sasl=oauthbearer",
	} {
		if _, err := readBroker(t, query); !fits(err, want) {
			t.Errorf("%s: %v, want %q", query, err, want)
		}
	}
}

// TestBroker: a password that changes is the next connection's, a broken one is not.
func TestBroker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "password")
		save(t, path, "topsecret1\n")
		b, err := readBroker(t, "sasl=plain&username=u&password_file="+path)
		if err != nil {
			t.Fatal(err)
		}
		var told reportLog
		for range 2 { // the second time nothing is read
			if err := b.Open(told.reports()); err != nil {
				t.Fatal(err)
			}
		}
		want := func(secret string) {
			t.Helper()
			if user, got := b.Login(); user != "u" || got != secret {
				t.Errorf("%s, %s, want %s", user, got, secret)
			}
		}
		want("topsecret1")
		save(t, path, "topsecret2\n")
		next()
		want("topsecret2")
		save(t, path, "\n")
		next()
		want("topsecret2")
		empty, err := readBroker(t, "sasl=oauthbearer&token_file="+path)
		if err != nil {
			t.Fatal(err)
		}
		if err := empty.Open(told.reports()); !fits(err, "it is empty") {
			t.Error(err)
		}
	})
}
