// SPDX-License-Identifier: Apache-2.0

package testcert

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"testing"
	"time"
)

func TestCertificates(t *testing.T) {
	ca := New(t)
	late := ca.Issue(t, &Options{Hosts: []string{"localhost"}, NotAfter: time.Now().Add(-time.Hour)})
	stranger := New(t)
	for _, tt := range []struct {
		name           string
		server, client *Pair
		roots          *CA
		ok             bool
	}{
		{"both", ca.Server, ca.Client, ca, true},
		{"expired", late, ca.Client, ca, false},
		{"stranger", ca.Server, stranger.Client, ca, false},
		{"strange server", ca.Server, ca.Client, stranger, false},
	} {
		a, b := net.Pipe()
		server := tls.Server(a, &tls.Config{
			Certificates: []tls.Certificate{tt.server.TLS}, ClientCAs: ca.Pool,
			ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS12,
		})
		client := tls.Client(b, &tls.Config{
			Certificates: []tls.Certificate{tt.client.TLS}, RootCAs: tt.roots.Pool, ServerName: "localhost",
			MinVersion: tls.VersionTLS12,
		})
		result := make(chan error, 1)
		go func() {
			err := server.Handshake()
			a.Close()
			result <- err
		}()
		clientErr := client.Handshake()
		b.Close()
		serverErr := <-result
		if ok := clientErr == nil && serverErr == nil; ok != tt.ok {
			t.Errorf("%s: server %v, client %v", tt.name, serverErr, clientErr)
		}
	}
	for _, host := range []string{"localhost", "127.0.0.1", "::1"} {
		if _, err := ca.Server.TLS.Leaf.Verify(x509.VerifyOptions{Roots: ca.Pool, DNSName: host}); err != nil {
			t.Errorf("%s: %v", host, err)
		}
	}
}
