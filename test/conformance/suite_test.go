// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"crypto/tls"
	"crypto/x509"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/internal/needs"
)

func TestMain(m *testing.M) {
	flag.Parse()
	if !foreign() { // this repository's own answer; a busy machine may hold them up
		*wait = max(*wait, 2*time.Minute)
	}
	if to := os.Getenv(loggerEnv); to != "" {
		if err := runLogger(to); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	code := needs.Main(m)
	if binaries != "" {
		if err := os.RemoveAll(binaries); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	os.Exit(code)
}

// TestConformance tests servers and clients, rule by rule.
func TestConformance(t *testing.T) {
	if !foreign() {
		if _, err := program(); err != nil {
			t.Fatal(err)
		}
	}
	var list []result
	end := func(sub subject, cases func(*rule) func(*trial)) {
		t.Run(sub.name(), func(t *testing.T) {
			if s, ok := sub.(*servers); ok {
				s.t = t // the servers end with it
			}
			for i := range rules {
				if c := cases(&rules[i]); c != nil {
					if res, ok := try(t, &rules[i], sub, c); ok {
						list = append(list, res)
					}
				}
			}
			if s, ok := sub.(*servers); ok {
				t.Run("nothing came late", s.nothingLate)
			}
		})
	}
	atServer := func(r *rule) func(*trial) { return r.server }
	atClient := func(r *rule) func(*trial) { return r.client }
	all := &servers{all: map[string]*server{}}
	switch {
	case !foreign():
		end(all, atServer)
		end(send, atClient)
		end(logger, atClient)
	default:
		if *addr != "" {
			all.all["plain"] = stranger(t)
			end(all, atServer)
		}
		if *client != "" || *clientLogin != "" || *clientTLS != "" {
			end(command, atClient)
		}
	}
	conclude(t, list)
}

// stranger is the server that flags name.
func stranger(t *testing.T) *server {
	t.Helper()
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
	return s
}
