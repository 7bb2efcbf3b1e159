// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
)

// guarded returns a copy of a program's own configuration whose functions fail where they panic:
// they are called on our goroutines, and a logger does not end the program.
func guarded(c *tls.Config) *tls.Config {
	c = c.Clone()
	if f := c.VerifyPeerCertificate; f != nil {
		c.VerifyPeerCertificate = func(raw [][]byte, chains [][]*x509.Certificate) (err error) {
			defer caught("VerifyPeerCertificate", &err)
			return f(raw, chains)
		}
	}
	if f := c.VerifyConnection; f != nil {
		c.VerifyConnection = func(s tls.ConnectionState) (err error) {
			defer caught("VerifyConnection", &err)
			return f(s)
		}
	}
	if f := c.GetClientCertificate; f != nil {
		c.GetClientCertificate = func(r *tls.CertificateRequestInfo) (cert *tls.Certificate, err error) {
			defer caught("GetClientCertificate", &err)
			return f(r)
		}
	}
	return c
}

// caught, deferred, makes a panic an error. What the panic says is not known to be fit to be shown.
func caught(name string, err *error) {
	if v := recover(); v != nil {
		*err = fmt.Errorf("Options.TLS: %s panicked (%T)", name, v)
	}
}
