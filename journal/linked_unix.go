// SPDX-License-Identifier: Apache-2.0

//go:build unix

package journal

import (
	"errors"
	"sync"

	"golang.org/x/sys/unix"
)

// Linked says whether the file still has a name.
func (f osFile) Linked() (bool, error) {
	l := lookers.Get().(*looker)
	defer lookers.Put(l)
	if err := f.conn.Control(l.look); err != nil {
		return true, err
	}
	return l.links > 0, l.err
}

// looker is what a look at a file needs, kept so that asking before each ack allocates nothing.
type looker struct {
	look  func(fd uintptr)
	stat  statBuffer
	links uint64
	err   error
}

var lookers = sync.Pool{New: func() any {
	l := new(looker)
	l.look = func(fd uintptr) {
		l.links, l.err = l.stat.links(fd)
		for errors.Is(l.err, unix.EINTR) {
			l.links, l.err = l.stat.links(fd)
		}
	}
	return l
}}
