// SPDX-License-Identifier: Apache-2.0

package kafka

import (
	"crypto/tls"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/spillwaylog/spillway/collector"
	"github.com/spillwaylog/spillway/internal/testcert"
)

// delivers wants a chunk to arrive that was submitted while the login was wrong, once it is right.
func delivers(t *testing.T, url, wrong string, mend func()) {
	t.Helper()
	o, h := opened(t, url)
	done := make(chan collector.Result, 1)
	o.Submit(chunkOf("id", 0, 10), func(r collector.Result) { done <- r })
	eventually(t, "it says "+wrong, func() bool { return h.said(wrong) && h.said("broker 127.0.0.1:") })
	if h.said("correct") {
		t.Errorf("a secret is told: %q", h.failed)
	}
	mend()
	if r := <-done; r.Err != nil || len(r.Rejected) > 0 {
		t.Errorf("%+v", r)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	must(t, os.WriteFile(path, []byte(text), 0o600))
}

// TestLogin has brokers that want TLS and a password, and an output with the wrong one in a file,
// until the right one is there.
func TestLogin(t *testing.T) {
	ca := testcert.New(t)
	for name, method := range map[string]string{
		"plain": "PLAIN", "scram-sha-256": "SCRAM-SHA-256",
		"scram-sha-512": "SCRAM-SHA-512",
	} {
		t.Run(name, func(t *testing.T) {
			password := filepath.Join(t.TempDir(), "password")
			c := cluster(t, kfake.TLS(&tls.Config{Certificates: []tls.Certificate{ca.Server.TLS}}), kfake.EnableSASL(),
				kfake.Superuser(method, "ann", "correct"))
			base := "kafka://" + brokers(c) + "/logs?tls=true&ca=" + ca.File + "&username=ann&sasl=" + name
			write(t, password, "wrong\n")
			delivers(t, base+"&password_file="+password, "", func() { write(t, password, "correct\n") })

			t.Setenv("KAFKA_TEST_PASSWORD", "correct")
			o, h := opened(t, base+"&password_env=KAFKA_TEST_PASSWORD")
			if r := submitAll(t, o, chunkOf("id", 0, 10))[0]; r.Err != nil || len(r.Rejected) > 0 {
				t.Errorf("%+v, %q", r, h.failed)
			}
			open, err := plan(base + "&password_file=" + t.TempDir() + "/none")
			must(t, err)
			if _, err := open(nil); err == nil || !strings.Contains(err.Error(), "none") {
				t.Errorf("a password file that is missing: %v", err)
			}
		})
	}
}

// TestCertificate has brokers that want a certificate, and an output with that of another
// authority, until the right one is there.
func TestCertificate(t *testing.T) {
	t.Parallel()
	ca, other := testcert.New(t), testcert.New(t)
	c := cluster(t, kfake.TLS(&tls.Config{
		Certificates: []tls.Certificate{ca.Server.TLS}, ClientCAs: ca.Pool, ClientAuth: tls.RequireAndVerifyClientCert,
	}))
	cert, key := filepath.Join(t.TempDir(), "cert"), filepath.Join(t.TempDir(), "key")
	put := func(p *testcert.Pair) {
		for from, to := range map[string]string{p.Cert: cert, p.Key: key} {
			b, err := os.ReadFile(from)
			must(t, err)
			write(t, to, string(b))
		}
	}
	put(other.Client)
	delivers(t, "kafka://"+brokers(c)+"/logs?tls=true&ca="+ca.File+"&cert="+cert+"&key_file="+key, "",
		func() { put(ca.Client) })
}

// TestToken has brokers that want a token, and an output with an old one in a file, until a new one
// is there. What kfake does not know of tokens is here.
func TestToken(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	c.ControlKey(int16(kmsg.SASLHandshake), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		resp := req.ResponseKind().(*kmsg.SASLHandshakeResponse)
		resp.SupportedMechanisms = []string{"OAUTHBEARER"}
		return resp, nil, true
	})
	var mu sync.Mutex
	var got []string
	c.ControlKey(int16(kmsg.SASLAuthenticate), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		mu.Lock()
		defer mu.Unlock()
		said := string(req.(*kmsg.SASLAuthenticateRequest).SASLAuthBytes)
		got = append(got, said)
		resp := req.ResponseKind().(*kmsg.SASLAuthenticateResponse)
		if said != "n,,\x01auth=Bearer correct\x01\x01" {
			resp.ErrorCode = kerr.SaslAuthenticationFailed.Code
		}
		return resp, nil, true
	})
	token := filepath.Join(t.TempDir(), "token")
	write(t, token, "old\n")
	delivers(t, "kafka://"+brokers(c)+"/logs?sasl=oauthbearer&token_file="+token, "SASL_AUTHENTICATION_FAILED",
		func() { write(t, token, "correct\n") })
}
