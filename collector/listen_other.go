// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package collector

import "net"

// listenUnix listens on a unix socket. Only an absent one: whether an old one
// is live cannot be told safely here.
func listenUnix(path string) (net.Listener, error) {
	return net.Listen("unix", path)
}

// maxConnections is how many connections there may be; 0: any number.
func maxConnections() int { return 0 }
