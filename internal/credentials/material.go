// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"time"
)

// pair reads a certificate and its key, in PEM.
func pair(f *files, certFile, keyFile file) (tls.Certificate, error) {
	cert, err := f.read(certFile, maxPEM, false)
	if err != nil {
		return tls.Certificate{}, err
	}
	key, err := f.read(keyFile, maxPEM, true)
	if err != nil {
		return tls.Certificate{}, err
	}
	p, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("%s with %s: %w", certFile, keyFile, err)
	}
	f.warnOfTime(certFile, p.Leaf)
	return p, nil
}

// pool reads the certificates of authorities, in PEM. All have to be good: one that is left out is
// missed later, far from here.
func pool(f *files, of file) (*x509.CertPool, error) {
	data, err := f.read(of, maxPEM, false)
	if err != nil {
		return nil, err
	}
	certs, err := parseCertificates(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", of, err)
	}
	p := x509.NewCertPool()
	for _, c := range certs {
		f.warnOfTime(of, c)
		p.AddCert(c)
	}
	return p, nil
}

var errNoCertificate = errors.New("there is no certificate in it (PEM begins with -----BEGIN CERTIFICATE-----)")

// parseCertificates returns all certificates in PEM text, and passes over what else there is.
func parseCertificates(data []byte) ([]*x509.Certificate, error) {
	var certs []*x509.Certificate
	for {
		var b *pem.Block
		if b, data = pem.Decode(data); b == nil {
			break
		}
		if b.Type != "CERTIFICATE" {
			continue
		}
		c, err := x509.ParseCertificate(b.Bytes)
		if err != nil {
			return nil, fmt.Errorf("certificate %d in it: %w", len(certs)+1, err)
		}
		certs = append(certs, c)
	}
	if len(certs) == 0 {
		return nil, errNoCertificate
	}
	return certs, nil
}

// warnOfTime tells of a certificate that is not valid now.
func (f *files) warnOfTime(of file, c *x509.Certificate) {
	switch now := time.Now(); {
	case now.After(c.NotAfter):
		f.warn(fmt.Errorf("%s: the certificate has expired on %s", of, c.NotAfter.UTC().Format(time.DateTime)))
	case now.Before(c.NotBefore):
		f.warn(fmt.Errorf("%s: the certificate is not valid before %s", of, c.NotBefore.UTC().Format(time.DateTime)))
	}
}
