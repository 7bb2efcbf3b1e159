// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package syslog

import "net"

// forceBuffer does nothing: what the system gives is all there is.
func forceBuffer(net.PacketConn, int) bool { return false }

// newPacketSocket reads one datagram at a time; this system does not say what it drops.
func newPacketSocket(c net.PacketConn, size int) (packetSocket, error) {
	return &plainSocket{PacketConn: c, buf: make([]byte, size)}, nil
}
