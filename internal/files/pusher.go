// SPDX-License-Identifier: Apache-2.0

package files

import (
	"sync"
	"sync/atomic"
)

// pushBytes is how much a file gets before the disk is set to work on it.
const pushBytes = 8 << 20

// A pusher sets the disk to work on what files got while more comes. With NoSync nothing else does
// before Close, which would then wait for all of it. A goroutine asks, one at a time, since the
// kernel lets the one that asks wait when the disk has enough to do.
type pusher struct {
	busy    atomic.Bool
	running sync.WaitGroup
}

// wrote notes that a file got n bytes.
func (p *pusher) wrote(k *kernel, f *file, n int) {
	f.behind += int64(n)
	if f.behind < pushBytes || !p.busy.CompareAndSwap(false, true) {
		return
	}
	f.behind = 0
	handle := f.handle // closing it meanwhile is no harm
	p.running.Go(func() {
		k.push(handle)
		p.busy.Store(false)
	})
}

// end returns when nobody asks any more.
func (p *pusher) end() { p.running.Wait() }
