// SPDX-License-Identifier: Apache-2.0

package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

// Options of a Set. The zero value works, but for one thing: without Record, lines written since
// the last Sync may be written again after a crash.
type Options struct {
	MaxOpen  int           // files open at once; default 256
	Buffer   int           // bytes for one file before Extend asks for a Write; default 128 KiB
	Memory   int           // bytes for all files before Extend asks for a Write; default 8 MiB
	Idle     time.Duration // a file without a line for that long is closed; default 10 minutes
	FileMode fs.FileMode   // of new files, before umask; default 0644
	DirMode  fs.FileMode   // of new directories, before umask; default 0755

	// NewFiles is how many new files are made in a minute; then lines whose file is not there go,
	// for the rest of it, to the one with "other" in the place of tag and time. 0: as many as come.
	// See Set.Marks.
	NewFiles int

	// NoSync leaves the disk to the kernel: nothing is made durable, so that lines survive the
	// process and not a power cut.
	NoSync bool

	// Shared says that other processes write the same files. Then what Record makes durable names
	// what is about to be written, and there is neither Long nor Checkpoint. Distinct is how
	// lines begin that are never equal in two processes, "" if there are none. SharedAppend has the
	// last batch of a killed process come again, whether it stands in the file or not, unless its
	// first line begins so.
	Shared   Sharing
	Distinct string

	// Rotation is never, if zero, and nothing is deleted. What Sync returns must be committed
	// before the next Write, which lets the rotated files that it settled be compressed and
	// deleted.
	Rotation Rotation

	// Awaited returns the processes that have a ring or a spill, living or dead, and so have lines
	// that may be looked for in files under the path; nil: there are none. With an error nothing of
	// other processes is touched. It is called by another goroutine, before files of ended
	// processes are compressed or deleted.
	Awaited func() ([]Process, error)

	// Record makes state durable together with the position that belongs to the last Sync: the
	// position up to which the lines were appended when that Sync was called, or that Open was told
	// of if there was none. The Set calls it from within Write and Sync before the first byte goes
	// to a file that the last state does not name; also in the middle of a Write, when a file is
	// rotated there.
	Record func(state []byte) error

	// Report is told what nobody else learns: that a file was moved away or cut, that bytes of
	// others were found where lines were expected. It must not call the Set. With Rotation it may
	// be called by another goroutine.
	Report func(error)

	kernel *kernel   // of tests
	self   *identity // of tests
}

// What can be wrong.
var (
	ErrClosed = errors.New("files: set is closed")
	ErrState  = errors.New("files: unreadable state")
	ErrKind   = errors.New("not a regular file")

	// ErrSync says that the kernel could not bring written lines to the disk. It tells so once and
	// forgets the bytes, so that a Set stays failed after it: close it, open another with the state
	// and the position last committed, and append again from there.
	ErrSync = errors.New("files: sync failed")
)

var (
	errStopped = errors.New("stopped")
	errBusy    = errors.New("in use")
	errGone    = errors.New("not there any more")
)

// kernel is the seam where tests put failures.
type kernel struct {
	write   func(*os.File, []byte) (int, error)
	writeAt func(*os.File, []byte, int64) (int, error)
	sync    func(*os.File) error // data and size
	rename  func(from, to string) error
	syncDir func(path string) error // names
	atOnce  int                     // syncs that may run at the same time
}

func (o *Options) resolved() (Options, error) {
	var r Options
	if o != nil {
		r = *o
	}
	for _, n := range []struct {
		name      string
		value     *int
		otherwise int
	}{
		{"MaxOpen", &r.MaxOpen, 256},
		{"Buffer", &r.Buffer, 128 << 10},
		{"Memory", &r.Memory, 8 << 20},
		{"NewFiles", &r.NewFiles, 0},
	} {
		if *n.value < 0 {
			return r, fmt.Errorf("files: %s is negative", n.name)
		}
		if *n.value == 0 {
			*n.value = n.otherwise
		}
	}
	if err := r.Rotation.check(); err != nil {
		return r, err
	}
	if r.Idle <= 0 {
		r.Idle = 10 * time.Minute
	}
	if r.FileMode == 0 {
		r.FileMode = 0o644
	}
	if r.DirMode == 0 {
		r.DirMode = 0o755
	}
	if r.Record == nil {
		r.Record = func([]byte) error { return nil }
	}
	if r.Report == nil {
		r.Report = func(error) {}
	}
	if r.kernel == nil {
		r.kernel = &kernel{sync: syncData, syncDir: syncDir, atOnce: 8}
	}
	if r.kernel.write == nil {
		r.kernel.write = (*os.File).Write
		if r.Shared != Unshared {
			r.kernel.write = writeOnce
		}
	}
	if r.kernel.writeAt == nil {
		r.kernel.writeAt = (*os.File).WriteAt
	}
	if r.kernel.rename == nil {
		r.kernel.rename = os.Rename
	}
	if r.self == nil {
		host, err := os.Hostname()
		if err != nil {
			host = "localhost"
		}
		r.self = &identity{host: host, pid: fmt.Sprint(os.Getpid())}
	}
	return r, nil
}

// Sharing says how a Set writes files that other processes write, too. All of them have to do it in
// the same way.
type Sharing uint8

const (
	// Unshared is a Set's own file: lines are found again by comparing what follows a length.
	Unshared Sharing = iota
	// SharedAppend writes batches of whole lines, each with one append. A kill within a write
	// leaves a part of a batch, and the batch comes again.
	SharedAppend
	// SharedLock writes them under a lock, which also completes what a kill left. See latch.
	SharedLock
)

// A Process has files that others leave alone: it may write them, or its successor may look for
// lines.
type Process struct {
	PID  int
	Made time.Time // before its first line that may be looked for; zero: none is where the path leads
	Dead bool      // surely, though another process may have its id
}
