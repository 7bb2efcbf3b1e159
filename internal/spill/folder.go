// SPDX-License-Identifier: Apache-2.0

package spill

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/spillwaylog/spillway/internal/within"
	"github.com/spillwaylog/spillway/journal"
)

// cursor is the name of a spill's cursor.
const cursor = "mover"

const (
	segmentBytes = 4 << 20
	minWithin    = 256 << 10 // of MaxDisk: the least that a journal wants
	budgetEvery  = time.Second
	retryAfter   = 100 * time.Millisecond
	sweepTries   = 5000 // of a millisecond: a sweep opens a journal, and closes it, on a busy disk
)

// ErrBudget says that all spills together hold what Options.MaxDisk allows. It wraps
// journal.ErrFull.
var ErrBudget = fmt.Errorf("spill: all spills together have reached MaxDisk: %w", journal.ErrFull)

// Options of a Folder. Name, Dir, MaxDisk and Report are needed.
type Options struct {
	Name     string // of the process's kind: the first part of the names of its rings and spills
	Identity []byte // must be equal for one process to adopt what another one left
	Dir      string
	Shm      string // the folder of rings; empty: there are none in shared memory
	MaxDisk  int64  // bytes of all spills in Dir together
	BootID   func() string
	Report   func(error)
	GaveUp   <-chan struct{} // closed when nothing is tried again any more; nil: never
	FS       journal.FS      // nil is the operating system
	// Within is Dir, opened by a process that takes over spills of other users, too; nil: it is
	// reached by its path. The caller closes it, once all spills are closed.
	Within *within.Folder
	// Rings says whether there is a ring of that name: with Within, in place of a look into Shm.
	Rings func(name string) bool
	Fault func(string) // called between the steps of a write, by tests
}

// A Folder is where processes of one name keep their spills. Its methods, and those of its spills
// but Commit, belong to one goroutine: a disk may hold up any of them for any time.
type Folder struct {
	reach
	opt        Options
	listed     int       // chunks, by the last Discover
	discovered int64     // bytes of the spills that it looked at
	paired     bool      // a spill of this process has the ring's name
	counted    time.Time // when taken was
	taken      int64     // bytes of the spills that are not the one that was asked for
}

// New does nothing yet with the folder.
func New(o *Options) *Folder {
	f := &Folder{opt: *o, reach: reach{o.Within}}
	if f.opt.Fault == nil {
		f.opt.Fault = func(string) {}
	}
	return f
}

func (f *Folder) report(err error) {
	if err != nil {
		f.opt.Report(err)
	}
}

// pause waits before something is tried again, though not after GaveUp.
func (f *Folder) pause() {
	select {
	case <-time.After(retryAfter):
	case <-f.opt.GaveUp:
	}
}

// over says that nothing is tried again.
func (f *Folder) over() bool {
	select {
	case <-f.opt.GaveUp:
		return true
	default:
		return false
	}
}

// cleanName makes a part of a file name of s, as package ring does.
func cleanName(s string) string {
	b := []byte(s)
	b = b[:min(len(b), 100)]
	for i, c := range b {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte("_-+@", c) >= 0:
		default:
			b[i] = '_'
		}
	}
	return string(b)
}

func (f *Folder) freshName() string {
	var b [8]byte
	rand.Read(b[:]) // never fails
	return fmt.Sprintf("%s.%d.%s", cleanName(f.opt.Name), os.Getpid(), hex.EncodeToString(b[:]))
}

// Make makes a spill for this process. Where it has a ring in shared memory, at the path ring, the
// folders of both have one name: the successor of one looks for the other. made is the age by which
// successors ship spills.
func (f *Folder) Make(ring string, made time.Time) (*Spill, error) {
	return f.make(ring, made, false)
}

// MakeWithin makes one for what is appended to it at once: it has not the ring's name, and takes no
// more than MaxDisk leaves now. So nothing has to ask Budget for it, whose answer for the own spill
// counts it.
func (f *Folder) MakeWithin(ring string, made time.Time) (*Spill, error) {
	return f.make(ring, made, true)
}

func (f *Folder) make(ring string, made time.Time, within bool) (*Spill, error) {
	if err := os.MkdirAll(f.opt.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("spill: %w", err)
	}
	who, paired := Owner{Identity: f.opt.Identity, PID: os.Getpid(), Made: made}, ""
	if ring != "" {
		who.Ring = filepath.Base(ring)
	}
	if !within && !f.paired {
		paired = who.Ring
	}
	for try := range 10 {
		name := paired
		switch {
		case name == "" || try >= 8:
			name = f.freshName()
		case try > 0:
			<-time.After(time.Millisecond) // the process that removes the folder will soon be done
		}
		dir := filepath.Join(f.opt.Dir, name)
		err := os.Mkdir(dir, 0o700)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("spill: %w", err)
		}
		err = writeOwner(dir, who)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			_ = os.RemoveAll(dir) // the error of writing is what counts
			return nil, fmt.Errorf("spill: %w", err)
		}
		maxBytes, minBytes := f.opt.MaxDisk, f.segment()
		left := maxBytes - f.others(dir)
		if within {
			maxBytes, minBytes = left, minWithin
		}
		if left < minBytes {
			_ = os.RemoveAll(dir)
			return nil, ErrBudget
		}
		sp := &Spill{folder: f, Dir: dir, Made: made, maxBytes: maxBytes}
		for range sweepTries {
			if err = f.open(sp); !errors.Is(err, journal.ErrLocked) {
				break
			}
			// A process takes it for an abandoned one, and removes it, or has just seen that it is
			// not.
			<-time.After(time.Millisecond)
		}
		if err == nil {
			if _, err = os.Lstat(filepath.Join(dir, ownerFile)); errors.Is(err, fs.ErrNotExist) {
				_ = sp.close() // they have, before it was locked
				continue
			}
		}
		if errors.Is(err, fs.ErrNotExist) { // the same, while it was opened
			f.clear(dir)
			continue
		}
		if err != nil {
			_ = os.RemoveAll(dir)
			return nil, err
		}
		f.paired = f.paired || name == paired
		f.counted = time.Time{}
		return sp, nil
	}
	return nil, errors.New("spill: no name for a spill is free")
}

// segment is how many bytes a spill grows by.
func (f *Folder) segment() int64 { return min(segmentBytes, f.opt.MaxDisk/8) }

// maxFile is how long a segment may be, and so a record, of what is taken over by an open folder. A
// logger's has 4 MiB, or one event, which has a quarter of its ring at most.
const maxFile = 128 << 20

// open opens the journal in sp.Dir and its reader. What others take now does not bound the journal:
// they come and go, and budget looks at them.
func (f *Folder) open(sp *Spill) error {
	files, err := f.journals(sp, f.opt.FS)
	if err != nil {
		return fmt.Errorf("spill: %w", err)
	}
	longest := int64(0)
	if f.in != nil {
		longest = maxFile
	}
	sp.j, err = journal.Open(sp.Dir, &journal.Options{
		MaxRecord: longest, MaxBytes: cmp.Or(sp.maxBytes,
			f.opt.MaxDisk), SegmentBytes: f.segment(), FS: files, Report: func(err error) {
			if !sp.gone.Load() {
				f.report(err)
			}
		},
	})
	if err == nil {
		if sp.rd, err = sp.j.Reader(cursor); err == nil {
			return nil
		}
	}
	_ = sp.close() // the error of opening is what counts
	return fmt.Errorf("spill: %w", err)
}

// others is what all spills but one take, adopted ones and those of other processes.
func (f *Folder) others(dir string) int64 {
	var sum int64
	dirs, err := os.ReadDir(f.opt.Dir)
	if err != nil {
		return 0
	}
	for _, d := range dirs {
		path := filepath.Join(f.opt.Dir, d.Name())
		if _, ok := spillOf(d.Name()); !ok || !d.IsDir() || path == dir {
			continue
		}
		files, _ := os.ReadDir(path) // removed meanwhile: takes nothing
		for _, f := range files {
			if info, err := f.Info(); err == nil && info.Mode().IsRegular() {
				sum += info.Size()
			}
		}
	}
	return sum
}

// Budget says whether sp may grow: the bounds of journals that live at the same time do not know of
// each other.
func (f *Folder) Budget(sp *Spill) error {
	if now := time.Now(); now.Sub(f.counted) > budgetEvery {
		f.counted, f.taken = now, f.others(sp.Dir)
	}
	if f.taken+sp.j.Stats().Bytes > f.opt.MaxDisk {
		f.counted = time.Time{}
		return ErrBudget
	}
	return nil
}

// Unusable says why Dir, or the folder above it in which it would be made, takes no spill. A spill
// is made only when it is needed, and then it is too late to be told.
func (f *Folder) Unusable() error {
	for dir := f.opt.Dir; dir != ""; dir = filepath.Dir(dir) {
		fi, err := os.Stat(dir)
		switch {
		case errors.Is(err, fs.ErrNotExist) && dir != filepath.Dir(dir):
			continue
		case err == nil && !fi.IsDir():
			err = fmt.Errorf("%s is no folder", dir)
		case err == nil:
			err = writable(dir)
		}
		if err != nil {
			return fmt.Errorf("nothing can flow over to %s: %w", f.opt.Dir, err)
		}
		break
	}
	return nil
}

// clear removes a folder in which nothing matters. The journal in it is closed: it prepares
// segments by path, and would put one into a new spill of this name. The lock keeps others from
// opening one here. The folder is renamed before anything in it is removed: at no moment has a
// folder of this name lost a part.
func (f *Folder) clear(dir string) {
	lock, err := journal.Lock(dir)
	if err != nil {
		return
	}
	defer lock.Close()
	if _, err := f.readOwner(dir); !errors.Is(err, fs.ErrNotExist) {
		return // it was made meanwhile
	}
	if kept, err := os.ReadDir(filepath.Join(dir, quarantine)); err == nil && len(kept) > 0 {
		return // it must be looked at
	}
	if runtime.GOOS == "windows" {
		_ = lock.Close() // there a folder with an open file in it cannot be renamed
	}
	if f.rename(dir, dir+goneSuffix) == nil {
		_ = os.RemoveAll(dir + goneSuffix) // else the next Discover does
	}
}

// rename gives a folder a name that may be left from a removal that a kill cut short.
func (f *Folder) rename(dir, name string) error {
	err := os.Rename(dir, name)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return err
	}
	_ = os.RemoveAll(name) // the error of the second try is what counts
	return os.Rename(dir, name)
}
