// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package syslog

import "net"

// forceBuffer does nothing: what the system gives is all there is.
func forceBuffer(net.PacketConn, int) bool { return false }

// countDrops does nothing: this system does not say what it drops.
func countDrops(net.PacketConn) error { return nil }

// receive reads a datagram.
func receive(c net.PacketConn, buf, _ []byte) (n int, dropped uint32, known bool, from origin, err error) {
	n, from, err = receiveFrom(c, buf)
	return n, 0, false, from, err
}
