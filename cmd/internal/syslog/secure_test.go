// SPDX-License-Identifier: Apache-2.0

package syslog

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/collector"
	"github.com/spillwaylog/spillway/internal/needs"
	"github.com/spillwaylog/spillway/internal/testcert"
)

// TestNoCredentials: files that are none are refused when the input is opened, before it listens.
func TestNoCredentials(t *testing.T) {
	ca := testcert.New(t)
	good := map[string]string{"cert": ca.Server.Cert, "key": ca.Server.Key, "client_ca": ca.File}
	type bad struct{ parameter, path, want string }
	all := []bad{
		{"cert", t.TempDir(), "it is no regular file"},
		{"key", ca.Client.Key, "private key does not match public key"},
		{"client_ca", ca.Server.Key, "there is no certificate in it"},
		{"client_ca", filepath.Join(t.TempDir(), "none"), "client_ca="},
	}
	if runtime.GOOS == "linux" {
		for name := range good {
			all = append(all, bad{name, "/dev/zero", name + "=/dev/zero: it is no regular file"}) // it has no end
		}
	}
	for _, tt := range all {
		url := "syslog+tls://" + needs.Address() + "?x"
		for name, path := range good {
			if name == tt.parameter {
				path = tt.path
			}
			url = strings.TrimSuffix(url, "x") + name + "=" + filepath.ToSlash(path) + "&x"
		}
		open, err := plan(strings.TrimSuffix(url, "&x"))
		must(t, err)
		if _, err = open(&collector.InputEnv{Log: slog.New(slog.DiscardHandler)}); err == nil ||
			!strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s=%s: %v, want %q", tt.parameter, tt.path, err, tt.want)
		}
	}
}

// TestRenewed: certificate, key and authorities are exchanged by a reload. Who comes then meets the
// new ones, and connections end whose authority was withdrawn; others go on. What is broken
// replaces nothing.
func TestRenewed(t *testing.T) {
	dir := t.TempDir()
	name := func(of string) string { return filepath.ToSlash(filepath.Join(dir, of)) }
	put := func(to string, from ...string) {
		t.Helper()
		var all []byte
		for _, path := range from {
			b, err := os.ReadFile(path)
			must(t, err)
			all = append(all, b...)
		}
		must(t, os.WriteFile(name(to), all, 0o600))
	}
	ca, next := testcert.New(t), testcert.New(t)
	put("cert", ca.Server.Cert)
	put("key", ca.Server.Key)
	put("client_ca", ca.File, next.File)

	var log bytes.Buffer
	to := &lockedWriter{w: &log}
	said := func(texts ...string) bool {
		to.mu.Lock()
		defer to.mu.Unlock()
		for line := range strings.Lines(log.String()) {
			left := len(texts)
			for _, text := range texts {
				if strings.Contains(line, text) {
					left--
				}
			}
			if left == 0 {
				return true
			}
		}
		return false
	}
	config := &collector.Config{
		Inputs: collector.Ends("syslog+tls://127.0.0.1:0?cert=" + name("cert") + "&key=" + name("key") +
			"&client_ca=" + name("client_ca")),
		InputKinds: Kinds, Outputs: collector.Ends("file:" + name("out")), Dir: name("data"),
		Log: slog.New(slog.NewTextHandler(to, nil)),
	}
	c, err := collector.Open(config)
	must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		<-ended
		must(t, c.Close())
	})

	sent := 0
	send := func(c *tls.Conn) {
		t.Helper()
		sent++
		_, err := fmt.Fprintf(c, "<13>message %d\n", sent)
		must(t, err)
	}
	arrives := func() {
		t.Helper()
		eventually(t, fmt.Sprintf("%d messages arrive", sent), func() bool {
			b, err := os.ReadFile(name("out"))
			return err == nil && bytes.Count(b, []byte("\n")) == sent
		})
	}
	// dial makes a connection of a sender that knows both authorities.
	both := ca.Pool.Clone()
	b, err := os.ReadFile(next.File)
	must(t, err)
	both.AppendCertsFromPEM(b)
	dial := func(pair *testcert.Pair, version uint16) (*tls.Conn, error) {
		return tls.Dial("tcp", c.Addrs()[0].String(), &tls.Config{
			RootCAs: both, Certificates: []tls.Certificate{pair.TLS}, MaxVersion: version,
		})
	}
	// ends waits for a connection to end; nothing is sent on any.
	ends := func(c *tls.Conn) {
		t.Helper()
		must(t, c.SetReadDeadline(time.Now().Add(patience)))
		if _, err := c.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("the connection goes on: %v", err)
		}
	}
	meets := func(pair, server *testcert.Pair) *tls.Conn {
		t.Helper()
		c, err := dial(pair, tls.VersionTLS13)
		must(t, err)
		t.Cleanup(func() { _ = c.Close() }) // it has ended
		if got := c.ConnectionState().PeerCertificates[0]; !got.Equal(server.TLS.Leaf) {
			t.Errorf("another certificate: %v", got.Subject)
		}
		send(c)
		arrives()
		return c
	}
	old, stays := meets(ca.Client, ca.Server), meets(next.Client, ca.Server)

	put("cert", next.Server.Cert) // without its key
	if err := c.Apply(config); !errors.Is(err, collector.ErrCredentials) ||
		!strings.Contains(err.Error(), "private key does not match") {
		t.Errorf("half of a pair: %v", err)
	}
	meets(next.Client, ca.Server)

	put("key", next.Server.Key)
	put("client_ca", next.File)
	must(t, c.Apply(config))
	if !said("credentials renewed", "cert", "key", "client_ca") ||
		!said("peer-login-withdrawn", old.LocalAddr().String(), "its certificate is good no more") {
		to.mu.Lock()
		t.Errorf("the log:\n%s", log.String())
		to.mu.Unlock()
	}
	ends(old)
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		if c, err := dial(ca.Client, version); err == nil { // the server has the last word
			_, _ = io.WriteString(c, "<13>refused\n")
			ends(c)
			_ = c.Close() // it was reset
		}
	}
	meets(next.Client, next.Server)
	send(stays)
	arrives()
}
