// SPDX-License-Identifier: Apache-2.0

//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package ring

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"sync"
	"time"
)

// cleaned has the folders from which Open has removed leftovers: once is enough, for Adopt does it,
// too.
var cleaned sync.Map

// settle makes the ring's folder and files, complete under a temporary name, and maps the memory;
// furnish gets what it needs of that to begin with.
func settle(o *Options, born time.Time, m *memory, furnish func() error) (*home, error) {
	dir, err := ensureDir(o.Dir, o.Report)
	if err != nil {
		return nil, err
	}
	if _, cleaned := cleaned.LoadOrStore(dir, true); !cleaned {
		if d, err := OpenDir(dir); err == nil {
			d.Clean(0)
			d.Close()
		}
	}
	fit(&m.head, dir)
	for range 10 {
		// A process that cleans up may find the folder before it is locked, and then it is gone.
		var h *home
		if h, err = moveIn(o, dir, born, m, furnish); !errors.Is(err, ErrLocked) && !errors.Is(err, fs.ErrNotExist) {
			return h, err
		}
		_, _ = rand.Read(m.head.id[:])
	}
	return nil, err
}

// fit makes segments smaller where there is no room for many large ones.
func fit(h *head, dir string) {
	f, err := os.Open(dir)
	if err != nil {
		return
	}
	defer f.Close()
	if there := room(f); there < h.size {
		least := int64(minSegment)
		for least*maxSegments < h.size {
			least *= 2
		}
		h.unit = min(h.unit, max(segmentSize(there), least))
	}
}
