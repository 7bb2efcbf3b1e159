// SPDX-License-Identifier: Apache-2.0

package syslog

import (
	"net"
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"
)

// TestZone: the address of a link says which link it is of, as package net has it.
func TestZone(t *testing.T) {
	links, err := net.Interfaces()
	must(t, err)
	b := &burstSocket{zones: map[uint32]string{}}
	name := &unix.RawSockaddrInet6{
		Family: unix.AF_INET6, Addr: netip.MustParseAddr("fe80::1").As16(),
		Scope_id: 1<<31 - 1,
	}
	if got := b.addrOf(name).String(); got != "[fe80::1%2147483647]:0" {
		t.Errorf("of no link: %s", got)
	}
	for _, link := range links {
		name.Scope_id = uint32(link.Index)
		for range 2 {
			if got, want := b.addrOf(name).String(), "[fe80::1%"+link.Name+"]:0"; got != want {
				t.Errorf("%s, not %s", got, want)
			}
		}
	}
}
