// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"
)

const (
	besides    = 96 << 20 // what a collector needs besides what its connections buffer
	quietFor   = 5 * time.Second
	worthwhile = 32 << 20 // less is not worth a collection
)

// keepMemory tells the garbage collector how much the process is to take, unless GOMEMLIMIT does:
// nearly all there is are buffers of bytes, which it need not look into, so collecting often costs
// next to nothing. When all is quiet, what the garbage collector has not been asked for goes back
// to the system. stop ends that.
func keepMemory(buffers int64) (stop func()) {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(min(buffers, math.MaxInt64-besides) + besides)
	}
	done := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		var q quiet
		tick := time.NewTicker(quietFor)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				if q.look(readUsage()) {
					debug.FreeOSMemory()
				}
			case <-done:
				return
			}
		}
	})
	return sync.OnceFunc(func() {
		close(done)
		watching.Wait()
	})
}

// usage is what the runtime says of itself.
type usage struct {
	cycles uint64 // of the garbage collector, ever
	held   uint64 // bytes taken from the system
}

func readUsage() usage {
	s := []metrics.Sample{
		{Name: "/gc/cycles/total:gc-cycles"},
		{Name: "/memory/classes/total:bytes"},
		{Name: "/memory/classes/heap/released:bytes"},
	}
	metrics.Read(s)
	return usage{s[0].Value.Uint64(), s[1].Value.Uint64() - s[2].Value.Uint64()}
}

// quiet decides when memory is to go back: once after each time of work, when the garbage collector
// has had nothing to do between two looks.
type quiet struct {
	last  uint64 // cycles at the last look
	freed uint64 // cycles when memory went back
}

func (q *quiet) look(u usage) bool {
	still := u.cycles == q.last
	q.last = u.cycles
	if !still || u.cycles == q.freed || u.held < worthwhile {
		return false
	}
	q.last++ // to give back is a cycle itself
	q.freed = q.last
	return true
}
