// SPDX-License-Identifier: Apache-2.0

// Package testcert makes certificates for tests: an authority of its own, a server and a client
// that it vouches for, and whatever else a test asks for, all as files in PEM, as programs want
// them, and as values of package tls.
//
//	ca := testcert.New(t)
//	server := &tls.Config{Certificates: []tls.Certificate{ca.Server.TLS}, ClientCAs: ca.Pool, ClientAuth: tls.RequireAndVerifyClientCert}
//	client := &tls.Config{Certificates: []tls.Certificate{ca.Client.TLS}, RootCAs: ca.Pool}
//	url := "forward+tls://127.0.0.1:0?cert=" + ca.Server.Cert + "&key=" + ca.Server.Key + "&client_ca=" + ca.File
//	late := ca.Issue(t, &testcert.Options{Hosts: []string{"localhost"}, NotAfter: time.Now().Add(-time.Hour)})
//
// Unless told otherwise a certificate is valid from 1990 to 2190, so also in a bubble of
// testing/synctest, whose clock starts in the year 2000.
package testcert

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"
)

// A CA is a certificate authority.
type CA struct {
	File   string // its certificate
	Pool   *x509.CertPool
	Server *Pair // for 127.0.0.1, ::1 and localhost
	Client *Pair // for "client"

	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey

	mu     sync.Mutex
	serial int64
}

// A Pair is a certificate and its key.
type Pair struct {
	Cert, Key string // files; the key's can be read by its owner only
	TLS       tls.Certificate
}

// Options say what a certificate is like. The zero value is a client's without a name.
type Options struct {
	Name                string   // the subject's common name
	Hosts               []string // names and addresses of a server; none: it is a client's
	NotBefore, NotAfter time.Time
}

// New makes an authority, a server's pair and a client's. The files are gone when the test is.
func New(t testing.TB) *CA {
	t.Helper()
	ca := &CA{dir: t.TempDir(), Pool: x509.NewCertPool()}
	ca.key = newKey(t)
	template := ca.template(&Options{Name: "test authority"})
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageCRLSign
	template.ExtKeyUsage = nil
	der := sign(t, template, template, &ca.key.PublicKey, ca.key)
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	ca.cert = cert
	ca.Pool.AddCert(cert)
	ca.File = filepath.Join(ca.dir, "ca.pem")
	write(t, ca.File, "CERTIFICATE", der, 0o644)
	ca.Server = ca.Issue(t, &Options{Name: "localhost", Hosts: []string{"localhost", "127.0.0.1", "::1"}})
	ca.Client = ca.Issue(t, &Options{Name: "client"})
	return ca
}

// Issue makes a certificate that the authority vouches for.
func (ca *CA) Issue(t testing.TB, o *Options) *Pair {
	t.Helper()
	template := ca.template(o)
	key := newKey(t)
	der := sign(t, template, ca.cert, &key.PublicKey, ca.key)
	base := filepath.Join(ca.dir, template.SerialNumber.String())
	p := &Pair{Cert: base + ".pem", Key: base + ".key"}
	write(t, p.Cert, "CERTIFICATE", der, 0o644)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	write(t, p.Key, "PRIVATE KEY", der, 0o600)
	if p.TLS, err = tls.LoadX509KeyPair(p.Cert, p.Key); err != nil {
		t.Fatal(err)
	}
	return p
}

// template is the certificate before it is signed.
func (ca *CA) template(o *Options) *x509.Certificate {
	ca.mu.Lock()
	ca.serial++
	serial := ca.serial
	ca.mu.Unlock()
	c := &x509.Certificate{
		SerialNumber: big.NewInt(serial),
		Subject:      pkix.Name{CommonName: o.Name, Organization: []string{"test " + strconv.FormatInt(serial, 10)}},
		NotBefore:    o.NotBefore,
		NotAfter:     o.NotAfter,
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	if c.NotBefore.IsZero() {
		c.NotBefore = time.Date(1990, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	if c.NotAfter.IsZero() {
		c.NotAfter = time.Date(2190, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	for _, h := range o.Hosts {
		c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
		if ip := net.ParseIP(h); ip != nil {
			c.IPAddresses = append(c.IPAddresses, ip)
		} else {
			c.DNSNames = append(c.DNSNames, h)
		}
	}
	return c
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func sign(t testing.TB, template, parent *x509.Certificate, public *ecdsa.PublicKey, key *ecdsa.PrivateKey) []byte {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, key)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

func write(t testing.TB, name, kind string, der []byte, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(name, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), mode); err != nil {
		t.Fatal(err)
	}
}
