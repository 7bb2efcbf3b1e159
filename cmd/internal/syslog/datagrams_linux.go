// SPDX-License-Identifier: Apache-2.0

package syslog

import (
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"
	"unsafe"

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
	err = raw.Control(func(fd uintptr) {
		inner = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUFFORCE,
			bytes)
	})
	return err == nil && inner == nil
}

// newPacketSocket takes a socket over. Of one for UDP the kernel is asked to say with each datagram
// how many it had no room for.
func newPacketSocket(c net.PacketConn, size int) (packetSocket, error) {
	udp, ok := c.(*net.UDPConn)
	if !ok {
		return &plainSocket{PacketConn: c, buf: make([]byte, size)}, nil
	}
	raw, err := udp.SyscallConn()
	if err != nil {
		return nil, err
	}
	b := &burstSocket{
		addr: c.LocalAddr(), fd: -1, wakeFD: -1, zones: map[uint32]string{}, slots: make([]burstSlot, maxBurst),
		headers: make([]mmsghdr, maxBurst), all: make([]datagram, maxBurst),
	}
	for i := range b.slots {
		s := &b.slots[i]
		s.text = make([]byte, size)
		s.vector.Base = &s.text[0]
		s.vector.SetLen(size)
	}
	var inner error
	err = raw.Control(func(fd uintptr) { inner = b.take(int(fd)) })
	if err := errors.Join(err, inner); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, c.Close()
}

const (
	maxBurst  = 64 // datagrams of one system call
	burstRest = time.Millisecond
	roomyFrom = 2 << 20 // a receive buffer that holds what comes meanwhile, and much more
)

// A burstSocket reads many datagrams of UDP by one system call. When it has read all there were it
// rests before the next call, if the kernel keeps enough: being woken for each datagram costs many
// times what reading it does. Go's poller would be woken so, also while nothing waits; so the
// socket is not one of its own.
type burstSocket struct {
	addr    net.Addr
	fd      int
	slots   []burstSlot
	headers []mmsghdr
	all     []datagram
	zones   map[uint32]string // names of links; for read
	roomy   bool
	drained bool

	mu     sync.Mutex
	until  time.Time // the deadline; zero: none
	wakeFD int       // an eventfd that wakes the waiting reader: there is another deadline
	closed bool
}

// mmsghdr is the kernel's struct mmsghdr.
type mmsghdr struct {
	header unix.Msghdr
	length uint32
}

// A burstSlot is where one datagram goes.
type burstSlot struct {
	text    []byte
	vector  unix.Iovec
	name    unix.RawSockaddrInet6 // which has room for an address of IPv4
	control [64]byte
}

// take makes a descriptor of one's own of a socket's.
func (b *burstSocket) take(fd int) (err error) {
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RXQ_OVFL, 1); err != nil {
		return os.NewSyscallError("setsockopt", err)
	}
	kept, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF)
	b.roomy = err == nil && kept >= roomyFrom
	if b.fd, err = unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0); err != nil {
		return os.NewSyscallError("fcntl", err)
	}
	if b.wakeFD, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return os.NewSyscallError("eventfd", err)
	}
	return nil
}

func (b *burstSocket) LocalAddr() net.Addr { return b.addr }

// SetReadDeadline says until when read waits. Behind it nothing is read at all.
func (b *burstSocket) SetReadDeadline(t time.Time) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return net.ErrClosed
	}
	b.until = t
	_, err := unix.Write(b.wakeFD, binary.NativeEndian.AppendUint64(nil, 1))
	return os.NewSyscallError("write", err)
}

// Close closes the socket, which is not being read.
func (b *burstSocket) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return net.ErrClosed
	}
	b.closed = true
	var errs []error
	for _, fd := range []int{b.fd, b.wakeFD} {
		if fd >= 0 {
			errs = append(errs, os.NewSyscallError("close", unix.Close(fd)))
		}
	}
	return errors.Join(errs...)
}

func (b *burstSocket) read() ([]datagram, error) {
	if b.drained && b.roomy {
		<-time.After(burstRest)
	}
	for {
		left, err := b.left()
		if err != nil {
			return nil, err
		}
		n, err := b.receive()
		switch {
		case errors.Is(err, unix.EAGAIN):
			if err := b.wait(left); err != nil {
				return nil, err
			}
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return nil, os.NewSyscallError("recvmmsg", err)
		default:
			b.drained = n < maxBurst
			return b.all[:n], nil
		}
	}
}

// left returns how long read may wait; negative: without end.
func (b *burstSocket) left() (time.Duration, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.closed:
		return 0, net.ErrClosed
	case b.until.IsZero():
		return -1, nil
	}
	left := time.Until(b.until)
	if left <= 0 {
		return 0, os.ErrDeadlineExceeded
	}
	return left, nil
}

// wait waits for a datagram, for another deadline, or as long as that.
func (b *burstSocket) wait(d time.Duration) error {
	timeout := -1
	if d >= 0 {
		timeout = int((d + time.Millisecond - 1) / time.Millisecond)
	}
	fds := [...]unix.PollFd{{Fd: int32(b.fd), Events: unix.POLLIN}, {Fd: int32(b.wakeFD), Events: unix.POLLIN}}
	if _, err := unix.Poll(fds[:], timeout); err != nil && !errors.Is(err, unix.EINTR) {
		return os.NewSyscallError("poll", err)
	}
	if fds[1].Revents != 0 {
		var count [8]byte
		_, _ = unix.Read(b.wakeFD, count[:]) // it is empty then
	}
	return nil
}

// receive reads what there is.
func (b *burstSocket) receive() (n int, err error) {
	for i := range b.headers {
		s, h := &b.slots[i], &b.headers[i].header
		*h = unix.Msghdr{
			Name: (*byte)(unsafe.Pointer(&s.name)), Namelen: uint32(unsafe.Sizeof(s.name)), Iov: &s.vector,
			Control: &s.control[0],
		}
		h.SetIovlen(1)
		h.SetControllen(len(s.control))
	}
	r, _, errno := unix.Syscall6(unix.SYS_RECVMMSG, uintptr(b.fd), uintptr(unsafe.Pointer(&b.headers[0])), maxBurst,
		unix.MSG_DONTWAIT, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	n = int(r)
	for i := range n {
		s, h := &b.slots[i], &b.headers[i]
		d := datagram{text: s.text[:h.length], from: origin{addr: b.addrOf(&s.name)}}
		d.dropped, d.known = droppedOf(s.control[:min(int(h.header.Controllen), len(s.control))])
		b.all[i] = d
	}
	return n, nil
}

// addrOf is the address that the kernel wrote.
func (b *burstSocket) addrOf(name *unix.RawSockaddrInet6) netip.AddrPort {
	port := binary.BigEndian.Uint16((*[2]byte)(unsafe.Pointer(&name.Port))[:]) // it stands in the same place in both
	if name.Family == unix.AF_INET {
		return netip.AddrPortFrom(netip.AddrFrom4((*unix.RawSockaddrInet4)(unsafe.Pointer(name)).Addr), port)
	}
	addr := netip.AddrFrom16(name.Addr).Unmap()
	if name.Scope_id != 0 {
		addr = addr.WithZone(b.zone(name.Scope_id))
	}
	return netip.AddrPortFrom(addr, port)
}

// zone is the name of a link, as package net has it: two links may have the same addresses.
func (b *burstSocket) zone(index uint32) string {
	zone, known := b.zones[index]
	if !known {
		zone = strconv.FormatUint(uint64(index), 10)
		if link, err := net.InterfaceByIndex(int(index)); err == nil {
			zone = link.Name
		}
		b.zones[index] = zone
	}
	return zone
}

// droppedOf finds the kernel's count in control messages.
func droppedOf(control []byte) (n uint32, known bool) {
	for rest := control; len(rest) >= unix.CmsgLen(4); {
		header, data, more, err := unix.ParseOneSocketControlMessage(rest)
		if err != nil {
			break
		}
		if header.Level == syscall.SOL_SOCKET && header.Type == unix.SO_RXQ_OVFL && len(data) >= 4 {
			return binary.NativeEndian.Uint32(data), true
		}
		rest = more
	}
	return 0, false
}
