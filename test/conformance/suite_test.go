// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"crypto/tls"
	"crypto/x509"
	"flag"
	"fmt"
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	flag.Parse()
	if to := os.Getenv(loggerEnv); to != "" {
		if err := runLogger(to); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	code := m.Run()
	if binaries != "" {
		if err := os.RemoveAll(binaries); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	os.Exit(code)
}

// results is what this run found.
var results []result

// TestServer tests a server.
func TestServer(t *testing.T) {
	sub := &servers{t: t, all: map[string]*server{}}
	if foreign() {
		if *addr == "" {
			t.Skip("no -addr")
		}
		s := &server{addr: *addr, maxChunk: *maxChunk, maxUnpacked: *maxUnpacked}
		if *out != "" {
			s.lines = follow(*out)
		}
		if *tlsCA != "" {
			pem, err := os.ReadFile(*tlsCA)
			if err != nil {
				t.Fatal(err)
			}
			pool := x509.NewCertPool()
			if !pool.AppendCertsFromPEM(pem) {
				t.Fatalf("no certificate in %s", *tlsCA)
			}
			s.tls = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
		}
		if *sharedKey != "" {
			s.login = &login{host: "client.example", key: *sharedKey, user: *user, password: *password}
		}
		sub.all["plain"] = s
	} else if _, err := program(); err != nil {
		t.Fatal(err)
	}
	for i := range rules {
		if r := &rules[i]; r.server != nil {
			results = append(results, try(t, r, sub, r.server))
		}
	}
}
