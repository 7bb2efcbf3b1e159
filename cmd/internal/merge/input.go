// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"time"
)

// MaxLine is how many bytes a line may have; longer ones are told and left out.
const MaxLine = 1 << 20

// Bounds of the buffer of a file.
const (
	minBuffer = 4 << 10
	maxBuffer = 256 << 10
)

// An input is one file, or one run of a pass, read forward.
type input struct {
	path string
	from io.Reader // the part, or what unpacks it
	part *part
	run  bool // it holds records, see run.go

	follow  bool      // more may come, so a line without a newline is none yet
	long    bool      // the line to come has been longer than MaxLine so far
	missing time.Time // since when its path has none or another
	failed  bool      // the last read, which was told
	stop    func()

	base  int    // bytes that buf has when no line is longer
	buf   []byte // what was read and not yet taken is buf[at:end]
	at    int
	end   int
	ended error // io.EOF or what went wrong

	n      int // the place of the file among all
	number int // of the line, from 1
	line   []byte
	whole  bool  // it had a newline
	away   int64 // 1 more than where the line is to be read again; 0: it is in line
	size   int   // of the line that is away
	time   int64

	finder
	format *format // nil: not found yet
	looked int     // the last line that was searched for it in vain
	wanted bool    // the line that began with a time; what continues it goes with it
}

var errLong = fmt.Errorf("longer than %d bytes", MaxLine)

// next takes one line, without its newline. The line is valid until the next call.
func (f *input) next() error {
	long := f.long
	for seen := 0; ; {
		if n := bytes.IndexByte(f.buf[f.at+seen:f.end], '\n'); n >= 0 {
			f.take(seen+n, true)
			break
		}
		seen = f.end - f.at
		if f.ended != nil {
			if seen == 0 && !long || f.follow {
				f.long = long
				return f.ended
			}
			f.take(seen, false)
			break
		}
		if seen >= MaxLine {
			long, seen, f.at = true, 0, f.end
		}
		f.fill()
	}
	f.number++
	f.long = false
	if long || len(f.line) > MaxLine {
		return errLong
	}
	return nil
}

// over says that what ended the reading is no error: the end, or what the next look at a file
// that is followed will find.
func (f *input) over(err error) bool {
	if err == io.EOF { //nolint:errorlint // a wrapped one is not the end of the file
		return true
	}
	return f.follow && (errors.Is(err, errOther) || errors.Is(err, errShorter))
}

func (f *input) take(n int, whole bool) {
	f.line, f.whole, f.away = f.buf[f.at:f.at+n], whole, 0
	f.at = min(f.at+n+1, f.end)
}

// fill reads more. A buffer that has grown for a long line shrinks when that line is gone.
func (f *input) fill() {
	rest := f.end - f.at
	if rest == len(f.buf) {
		f.move(max(2*rest, f.base))
	} else if len(f.buf) > f.base && rest < f.base {
		f.move(f.base)
	} else {
		copy(f.buf, f.buf[f.at:f.end])
	}
	f.at, f.end = 0, rest
	n, err := f.from.Read(f.buf[rest:])
	f.end += n
	if err != nil {
		f.ended = err
		if !f.follow {
			f.close()
		}
	}
}

func (f *input) move(size int) {
	buf := make([]byte, size)
	copy(buf, f.buf[f.at:f.end])
	f.buf = buf
}

// ahead fills the buffer, so that there is something to look at behind the next line.
func (f *input) ahead() {
	for f.end-f.at < f.base && f.ended == nil {
		f.fill()
	}
}

// grown is what the buffer has beyond its base.
func (f *input) grown() int { return max(0, len(f.buf)-f.base) }

// leave gives up a buffer that has grown: the line, and what follows it, are read again when they
// are needed. It reports whether that can be done: what is being unpacked is not read twice.
func (f *input) leave() bool {
	if f.grown() == 0 || f.from != io.Reader(f.part) {
		return false
	}
	rest := int64(f.end - f.at)
	f.part.at -= rest
	f.part.spool.done -= rest
	f.size = len(f.line)
	f.away = f.part.at - int64(f.size) + 1
	if f.whole {
		f.away--
	}
	f.buf, f.line, f.at, f.end, f.ended = nil, nil, 0, 0, nil
	return true
}

// text is the line; one that is away is read into room.
func (f *input) text(room []byte) (line, _ []byte, err error) {
	if f.away == 0 {
		return f.line, room, nil
	}
	if cap(room) < f.size {
		room = make([]byte, max(f.size, 64<<10))
	}
	room = room[:f.size]
	_, err = f.part.ReadAt(room, f.away-1)
	return room, room, err
}

func (f *input) close() {
	if f.stop != nil {
		f.stop()
		f.stop = nil
	}
	if f.part != nil {
		f.part.close()
	}
}
