// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"
)

const (
	batchBytes   = 1 << 20                // a batch this full is written before more is appended
	batchMost    = batchBytes + 64<<10    // and none is larger: a record that does not fit goes on in the next
	mostBatches  = 16                     // free ones kept while there is much to do
	fewBatches   = 4                      // and when there is not
	lazySync     = 20 * time.Millisecond  // a waiting reader sees after this what nobody synced
	idleSync     = time.Second            // and without a reader, what nobody synced is synced after this
	maxUnsynced  = 8 << 20                // or when it is this much
	mostUnsynced = 32 << 20               // Append waits: a disk slower than the appenders must not be hidden by memory
	minRetry     = 100 * time.Millisecond // after a failed write or sync, the first attempt to go on
	maxRetry     = time.Second
)

// Journal is an open directory. All methods may be called at the same time.
//
// Lock order: Reader.mu, cursor.mu, reserve.mu, Journal.mu. Journal.mu is never held over a call to
// the kernel but that to close a reader's file, nor over Report; holes.mu is held alone.
// Journal.writing is a lock too, for the right to write to segments: who has it holds no other.
type Journal struct {
	dir  string
	fs   FS
	opt  Options
	lock io.Closer

	identity [16]byte // set by Open

	done chan struct{} // closed by Close
	wg   sync.WaitGroup
	kick chan struct{} // wakes the syncer
	prod chan struct{} // wakes the allocator

	synced atomic.Uint64 // Position; written by the syncer with mu held

	mu       sync.Mutex
	closed   bool
	closeErr error
	err      error         // sticky, of a write or sync; nil when all is well
	retryAt  time.Time     // when the syncer tries to go on
	retryIn  time.Duration // backoff
	told     []error       // to be reported by the syncer
	changed  chan struct{} // closed when anything changed that someone waits for; nil when nobody does
	more     chan struct{} // the same for readers, closed when more is durable

	// appending
	seg     *segment // being appended to; nil before the first record after Open
	last    Position // end of the record appended last; after Open see lastRecord
	off     int64    // end of what was appended to seg
	bind    binder   // of seg
	head    [recordHeader]byte
	queue   []*batch // to be written, in order; the last one is filling
	pending int      // new bytes in queue
	batches []*batch // free
	lists   [2][]*batch
	writing bool     // someone is in pwrite; only they touch segment.filled
	claimed bool     // by the syncer, who writes next
	written Position // end of what was handed to the kernel
	appends uint64

	// syncing
	next     *group // gathers those who wait for a sync that has not begun
	flying   *group // wait for the sync that runs
	flyingTo Position
	lazyAt   time.Time // sync then even if nobody waits; zero when everything is synced
	unsynced int64
	dirty    []*segment
	syncing  []*segment // belongs to the syncer, as does tail
	tail     []byte
	filled   []File // of segments that are full and durable, to be closed
	waiting  int    // readers at the end

	// segments
	segs    []*segment // live, oldest first; the last one is seg unless seg is nil
	ready   []*segment // prepared for use, in order of their numbers
	growing bool       // the first of ready is being made larger
	free    []*segment // passed by all cursors, to be recycled; the last one was used last
	trim    bool       // one of free is to be given back to the disk
	nextSeq uint32
	bytes   int64      // of all segment files
	want    int64      // size of a prepared segment that an Append waits for
	aside   []*segment // passed too, but the device did not give all their bytes: they are set aside, not used again
	blocked error      // why the allocator cannot prepare one, nil while it may
	blockAt int64      // the size it could not
	full    bool       // an Append was answered ErrFull, and space will be closed when that may have changed
	space   chan struct{}

	reserve reserve
	short   bool     // the reserve is not whole
	scarce  error    // why it could not be made so, nil while it may
	emptied Position // the reserve has yet to note that this was passed

	cursors map[string]*cursor
	readers map[*Reader]bool // open ones

	holes holes
	count counters
}

// Open opens the journal in dir, making the directory if it does not exist, and recovers what it
// holds. One process can have it open at a time.
func Open(dir string, o *Options) (*Journal, error) {
	j, err := load(dir, o)
	if err != nil {
		return nil, err
	}
	j.wg.Add(2)
	go j.runSyncer()
	go j.runAllocator()
	return j, nil
}

// load is Open without the goroutines.
func load(dir string, o *Options) (*Journal, error) {
	opt, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	j := &Journal{
		dir: dir, fs: opt.FS, opt: opt,
		done: make(chan struct{}), kick: make(chan struct{}, 1), prod: make(chan struct{}, 1),
		tail: make([]byte, pageSize), next: newGroup(), cursors: map[string]*cursor{}, readers: map[*Reader]bool{}, retryIn: minRetry,
	}
	if err := j.makeDir(); err != nil {
		return nil, fmt.Errorf("journal: make directory: %w", err)
	}
	if j.lock, err = j.fs.Lock(j.path("lock")); err != nil {
		if errors.Is(err, ErrLocked) {
			return nil, err
		}
		return nil, fmt.Errorf("journal: directory %s cannot be used: %w", dir, err)
	}
	if err = j.recover(); err == nil {
		err = j.openIdentity()
	}
	if err != nil {
		j.closeFiles()
		return nil, fmt.Errorf("journal: open %s: %w", dir, err)
	}
	return j, nil
}

// makeDir makes the directory, and its name durable: what is synced within it would be lost with
// it.
func (j *Journal) makeDir() error {
	var parents []string
	for d := j.dir; d != filepath.Dir(d); d = filepath.Dir(d) {
		if _, err := j.fs.ReadDir(d); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		parents = append(parents, filepath.Dir(d))
	}
	if err := j.fs.MkdirAll(j.dir); err != nil {
		return err
	}
	if len(parents) == 0 {
		// A process that was killed may have made it, and the folder around it, and synced neither
		// name.
		for d, n := filepath.Dir(j.dir), 0; n < 2; d, n = filepath.Dir(d), n+1 {
			_ = j.fs.SyncDir(d) // it may be nobody's to sync
		}
	}
	for _, d := range parents {
		// Who may write there need not be allowed to read, without which it cannot be synced.
		if err := j.fs.SyncDir(d); err != nil && !errors.Is(err, fs.ErrPermission) {
			return err
		}
	}
	return nil
}

// Close syncs what was appended, stops the journal's goroutines and releases the directory. It may
// be called again and at any time; waiters get ErrClosed. It waits for the disk.
func (j *Journal) Close() error {
	j.mu.Lock()
	if j.closed {
		j.mu.Unlock()
		j.wg.Wait()
		j.mu.Lock()
		defer j.mu.Unlock()
		return j.closeErr
	}
	j.closed = true
	close(j.done)
	j.broadcast()
	j.mu.Unlock()
	j.wg.Wait()
	j.mu.Lock()
	defer j.mu.Unlock()
	j.closeErr = errors.Join(j.err, j.closeErr, j.closeFiles())
	j.openSpace()
	return j.closeErr
}

// closeFiles ends Open or Close.
func (j *Journal) closeFiles() error {
	var errs []error
	for _, list := range [][]*segment{j.segs, j.ready, j.free, j.aside} {
		for _, s := range list {
			errs = append(errs, s.close())
		}
	}
	for r := range j.readers {
		errs = append(errs, r.drop())
	}
	for _, c := range j.cursors {
		errs = append(errs, c.close())
	}
	return errors.Join(append(errs, j.reserve.close(), j.lock.Close())...)
}

// broadcast wakes everyone in wait. With mu held.
func (j *Journal) broadcast() {
	if j.changed != nil {
		close(j.changed)
		j.changed = nil
	}
}

// waitChange returns the channel that the next broadcast closes. With mu held.
func (j *Journal) waitChange() <-chan struct{} {
	if j.changed == nil {
		j.changed = make(chan struct{})
	}
	return j.changed
}

// usable says why nothing can be appended or written now. With mu held.
func (j *Journal) usable() error {
	if j.closed {
		return ErrClosed
	}
	return j.err
}

// tell has the syncer report err. With mu held.
func (j *Journal) tell(err error) {
	if len(j.told) < 64 {
		j.told = append(j.told, err)
	}
	wake(j.kick)
}

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Synced is the end of what is durable.
func (j *Journal) Synced() Position { return Position(j.synced.Load()) }

func newNonce() (n nonce) {
	_, _ = rand.Read(n[:]) // never fails
	return n
}
