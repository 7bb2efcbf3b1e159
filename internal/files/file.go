// SPDX-License-Identifier: Apache-2.0

package files

import (
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"time"
)

// A file is one path that lines go to. It stays while it is open, while it has lines that wait, and
// while the state last committed names it; so that a file closed and opened again between two
// commits is still known.
type file struct {
	path   string
	route  route // under which it is found; set when the first line comes
	writer int   // index of the identity in its path

	// What the state says that was last recorded or committed, if it names the file.
	known  bool
	inode  uint64
	length int64 // lines up to the committed position are before it, later ones behind it
	doubt  bool  // a sync failed: later ones may be lost, though they can be read
	tail   tail  // up to length, or of no bytes
	last   tail  // up to where lines were last written or found

	// expected: behind length stand bytes of this or an earlier process that may be lines which
	// will be appended again. Up to found they were. limit is how long the file was when the Set
	// was opened: what came later is not of the process before.
	expected bool
	found    int64
	limit    int64
	whole    bool // a line ends at limit, so that this process writes none behind it

	lines []byte // waiting, whole lines; of the first, the torn bytes at its start are in the file already
	torn  int    // more than 0 only while the file ends in those bytes
	long  int64  // likewise, of a line that does not wait: see Set.Long
	end   int64  // where our last write ended; below 0 when the file may end within a line of others

	queued bool // in Set.waiting
	stuck  bool // the Write that runs could not write them

	handle  *os.File
	id      fileID
	touched bool  // got lines since the last Sync
	dirty   bool  // got lines since it was last synced
	behind  int64 // bytes that it got since the disk was last set to work on it; see pusher
	used    time.Time
	period  int64 // of rotation, in which it was begun or last written

	newer, older *file // among the open ones

	of string // the path that it had before it was rotated, if it is retired

	lot   *lot   // of a shared file
	latch *latch // likewise, with SharedLock
}

func kindOf(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "a directory"
	case m&fs.ModeNamedPipe != 0:
		return "a FIFO"
	case m&fs.ModeDevice != 0:
		return "a device"
	}
	return m.Type().String()
}

// continueAt makes the end of f, which is size bytes long, one where a line may begin.
func (f *file) continueAt(k *kernel, size int64) (err error) {
	if f.end < 0 {
		if size, err = f.endLine(k, size); err != nil {
			return err
		}
	}
	if !f.touched && (f.length != size || f.doubt) {
		f.known, f.length = false, size
	}
	return nil
}

// endLine writes the newline that the last line of somebody else lacks.
//
// While somebody else's write runs, a part of it can be seen, and looks like a line that lacks its
// end. So the end is believed only if it is still there when every write that was under way is
// through.
func (f *file) endLine(k *kernel, size int64) (int64, error) {
	const looks = 100 // then others write all the time, and can be trusted to end their lines
	for range looks {
		var last [1]byte
		if size > 0 {
			if _, err := f.handle.ReadAt(last[:], size-1); err != nil && !errors.Is(err, io.EOF) {
				return size, err
			}
		}
		if size == 0 || last[0] == '\n' {
			break
		}
		awaitWrites(f.handle)
		<-time.After(time.Millisecond)
		before := size
		var err error
		if size, err = f.handle.Seek(0, io.SeekEnd); err != nil {
			return size, err
		}
		if size == before {
			if _, err := k.write(f.handle, []byte{'\n'}); err != nil {
				return size, err
			}
			f.dirty = true
			size++
			break
		}
	}
	f.end = size
	return size, nil
}

func (f *file) put(k *kernel, b []byte) (n int, err error) {
	n, err = k.write(f.handle, b)
	if n > 0 {
		f.lookEnd()
		f.last = tailOf(b[:n], f.end)
		f.touched, f.dirty = true, true
	}
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	return n, err
}

// lookEnd asks where the bytes just written ended: not where expected, if others wrote at the same
// time.
func (f *file) lookEnd() {
	end, err := f.handle.Seek(0, io.SeekCurrent)
	if err != nil {
		end = -1
	}
	f.end = end
}

// renew makes f forget its file: the next one has nothing in it.
func (f *file) renew() {
	f.handle, f.id = nil, fileID{}
	f.known, f.doubt, f.touched, f.dirty = false, false, false, false
	f.inode, f.length, f.found, f.end, f.behind = 0, 0, 0, 0, 0
	f.tail, f.last = tail{}, tail{}
}

// present returns where the lines of f end that were written or found so far.
func (f *file) present() int64 {
	switch {
	case !f.touched:
		return f.length
	case f.expected || f.handle == nil:
		return f.found
	case f.end >= 0:
		return f.end
	}
	info, err := f.handle.Stat()
	if err != nil {
		return math.MaxInt64 // no file is that long: nothing will be looked for in it
	}
	return info.Size()
}

// tailAt returns the tail up to a place, of no bytes if it is not known.
func (f *file) tailAt(n int64) tail {
	for _, t := range []tail{f.last, f.tail} {
		if t.at == n {
			return t
		}
	}
	return tail{}
}
