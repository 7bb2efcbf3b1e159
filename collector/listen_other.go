// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package collector

import (
	"fmt"
	"net"
)

// listenUnix listens on a unix socket. Only an absent one: whether an old one
// is live cannot be told safely here.
func listenUnix(path string) (net.Listener, error) {
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("forward+unix://%s: %w", path, err)
	}
	return l, nil
}
