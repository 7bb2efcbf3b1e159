// SPDX-License-Identifier: Apache-2.0

package syslog

import (
	"encoding/binary"
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// forceBuffer gives a socket a receive buffer beyond net.core.rmem_max, where the process may do
// that.
func forceBuffer(c net.PacketConn, bytes int) bool {
	s, ok := c.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return false
	}
	var inner error
	err = raw.Control(func(fd uintptr) { inner = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, bytes) })
	return err == nil && inner == nil
}

// countDrops has the kernel say with each datagram how many it had no room for.
func countDrops(c net.PacketConn) error {
	udp, ok := c.(*net.UDPConn)
	if !ok {
		return nil
	}
	raw, err := udp.SyscallConn()
	if err != nil {
		return err
	}
	var inner error
	err = raw.Control(func(fd uintptr) { inner = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RXQ_OVFL, 1) })
	if err != nil {
		return err
	}
	return inner
}

// receive reads a datagram. dropped is how many the kernel had dropped by then, if that is known.
func receive(c net.PacketConn, buf, oob []byte) (n int, dropped uint32, known bool, from origin, err error) {
	udp, ok := c.(*net.UDPConn)
	if !ok {
		n, from, err = receiveFrom(c, buf)
		return n, 0, false, from, err
	}
	n, oobn, _, addr, err := udp.ReadMsgUDPAddrPort(buf, oob)
	from.addr = addr
	if err != nil {
		return 0, 0, false, from, err
	}
	for rest := oob[:oobn]; len(rest) >= unix.CmsgLen(4); {
		header, data, more, err := unix.ParseOneSocketControlMessage(rest)
		if err != nil {
			break
		}
		if header.Level == syscall.SOL_SOCKET && header.Type == unix.SO_RXQ_OVFL && len(data) >= 4 {
			return n, binary.NativeEndian.Uint32(data), true, from, nil
		}
		rest = more
	}
	return n, 0, false, from, nil
}
