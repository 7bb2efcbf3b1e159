// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

const (
	cursorMagic  = "SPILLCUR"
	cursorHeader = 48
	maxState     = 64 << 20
	maxCursor    = 4 * maxState // bytes of a file, which has room for two states that grow
)

// cursor is a durable place in the journal with a reader's opaque state, in a file of two slots. A
// commit overwrites the slot that does not hold the last one, so whatever becomes of the write, the
// last one stays; and it is one write of whole pages that changes no metadata.
type cursor struct {
	name string
	path string
	at   atomic.Uint64 // Position of the last commit; written with mu held

	mu    sync.Mutex
	file  File
	slot  int64  // bytes of a slot
	gen   uint64 // of the last commit; the slot is gen&1
	state []byte
	open  bool // a Reader has it; guarded by life.mu
	buf   []byte

	unnamed bool // the file's name may not be durable
}

// putSlot fills a slot.
func putSlot(b []byte, slot int64, gen uint64, p Position, state []byte) {
	copy(b, cursorMagic)
	binary.LittleEndian.PutUint32(b[8:], formatVersion)
	binary.LittleEndian.PutUint64(b[12:], uint64(slot))
	binary.LittleEndian.PutUint64(b[20:], gen)
	binary.LittleEndian.PutUint64(b[28:], uint64(p))
	binary.LittleEndian.PutUint32(b[36:], uint32(len(state)))
	binary.LittleEndian.PutUint32(b[40:], crc32.Checksum(state, castagnoli))
	binary.LittleEndian.PutUint32(b[44:], crc32.Checksum(b[:44], castagnoli))
	n := copy(b[cursorHeader:], state)
	clear(b[cursorHeader+n:])
}

// parseSlot reads a slot that lies at the start of b. state aliases b.
func parseSlot(b []byte) (slot int64, gen uint64, p Position, state []byte, ok bool) {
	if len(b) < cursorHeader || string(b[:8]) != cursorMagic || binary.LittleEndian.Uint32(b[8:]) != formatVersion ||
		crc32.Checksum(b[:44], castagnoli) != binary.LittleEndian.Uint32(b[44:]) {
		return 0, 0, 0, nil, false
	}
	n := binary.LittleEndian.Uint32(b[36:])
	if int64(n) > int64(len(b)-cursorHeader) {
		return 0, 0, 0, nil, false
	}
	state = b[cursorHeader : cursorHeader+int64(n)]
	if crc32.Checksum(state, castagnoli) != binary.LittleEndian.Uint32(b[40:]) {
		return 0, 0, 0, nil, false
	}
	return int64(binary.LittleEndian.Uint64(b[12:])), binary.LittleEndian.Uint64(b[20:]),
		Position(binary.LittleEndian.Uint64(b[28:])), state, true
}

// slotVersion is the format version of what lies at the start of b, 0 if that is no slot.
func slotVersion(b []byte) uint32 {
	if len(b) < cursorHeader || string(b[:8]) != cursorMagic ||
		crc32.Checksum(b[:44], castagnoli) != binary.LittleEndian.Uint32(b[44:]) {
		return 0
	}
	return binary.LittleEndian.Uint32(b[8:])
}

var errCursor = errors.New("neither slot of the cursor can be read")

// load reads the last commit of a whole cursor file.
func (c *cursor) load(b []byte) error {
	found := false
	half := int64(len(b) / 2)
	for i := range int64(2) {
		if v := slotVersion(b[i*half : (i+1)*half]); v > formatVersion {
			return fmt.Errorf("%w: %d", errVersion, v)
		}
		slot, gen, p, state, ok := parseSlot(b[i*half : (i+1)*half])
		if ok && slot == half && gen&1 == uint64(i) && (!found || gen > c.gen) {
			found = true
			c.slot, c.gen, c.state = slot, gen, slices.Clone(state)
			c.at.Store(uint64(p))
		}
	}
	if !found || half%pageSize != 0 {
		return errCursor
	}
	return nil
}

// writeLocked makes a commit durable, on a full disk with the reserve's help. With mu held, for
// which Close waits: a caller that gets it after that must not write any more.
func (c *cursor) writeLocked(r *reserve, p Position, state []byte) error {
	if r.over() {
		return ErrClosed
	}
	return r.with(func() error { return c.tryWriteLocked(r, p, state) })
}

func (c *cursor) tryWriteLocked(r *reserve, p Position, state []byte) error {
	if len(state) > maxState {
		return fmt.Errorf("%w: cursor state of %d bytes", ErrTooLarge, len(state))
	}
	need := pageUp(int64(cursorHeader + len(state)))
	gen := c.gen + 1
	if c.file == nil || need > c.slot {
		if err := c.replace(r, need, gen, p, state); err != nil {
			return err
		}
	} else {
		if int64(cap(c.buf)) < need {
			c.buf = make([]byte, need)
		}
		b := c.buf[:need]
		putSlot(b, c.slot, gen, p, state)
		if _, err := c.file.WriteAt(b, int64(gen&1)*c.slot); err != nil {
			return fmt.Errorf("journal: write cursor %s: %w", c.name, err)
		}
		if err := c.syncLocked(r); err != nil {
			return err
		}
	}
	c.gen = gen
	c.state = append(c.state[:0], state...)
	c.at.Store(uint64(p))
	return nil
}

// replace writes a new file with room for the state, and for it to grow, and puts it in the old
// one's place.
func (c *cursor) replace(r *reserve, need int64, gen uint64, p Position, state []byte) (err error) {
	slot := need
	if need > pageSize {
		slot = pageUp(need + need/2)
	}
	b := make([]byte, 2*slot)
	putSlot(b[int64(gen&1)*slot:][:slot], slot, gen, p, state)
	tmp := c.path + ".tmp"
	_ = r.fs.Remove(tmp) // of an attempt that failed
	f, err := r.fs.Create(tmp)
	if err != nil {
		return fmt.Errorf("journal: create cursor %s: %w", c.name, err)
	}
	if _, err = f.WriteAt(b, 0); err == nil {
		err = f.Datasync()
	}
	if err == nil {
		err = r.fs.Rename(tmp, c.path)
	}
	if err != nil { // a full disk needs what it took
		return fmt.Errorf("journal: write cursor %s: %w", c.name, errors.Join(err, f.Close(), r.fs.Remove(tmp)))
	}
	// From here on the new file has the name, whether that is durable or not: no commit may go to
	// the old one.
	if c.file != nil {
		_ = c.file.Close() // nothing in it matters
	}
	c.file, c.slot, c.gen, c.unnamed = f, slot, gen, true
	return c.syncLocked(r)
}

// syncLocked makes what was written durable, and the file's name if that is not certain. With mu
// held.
func (c *cursor) syncLocked(r *reserve) error {
	if err := c.file.Datasync(); err != nil {
		return fmt.Errorf("journal: sync cursor %s: %w", c.name, err)
	}
	if c.unnamed {
		if err := r.fs.SyncDir(r.dir); err != nil {
			return fmt.Errorf("journal: sync cursor %s: %w", c.name, err)
		}
		c.unnamed = false
	}
	return nil
}

// harden makes the commit that was read durable: it may have been read from memory only, after a
// sync of it failed or never ran. Neither slot may be written for that, for either may hold the
// only one on the disk. So a new file takes the old one's place.
func (c *cursor) harden(r *reserve) error {
	err := c.replace(r, pageUp(int64(cursorHeader+len(c.state))), c.gen, Position(c.at.Load()), c.state)
	if isNoSpace(err) {
		return c.file.Datasync() // a full disk has no room for a new file, and must be read to be emptied
	}
	return err
}

// remove deletes the file. The cursor is as it was if that fails.
func (c *cursor) remove(r *reserve) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.over() { // as in write
		return ErrClosed
	}
	// An attempt before this one may have come so far.
	if err := r.fs.Remove(c.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return r.fs.SyncDir(r.dir)
}

func (c *cursor) close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return closeFile(&c.file)
}

const cursorPrefix = "cursor-"

// cursorFile is the file name of a cursor: letters, digits and "._-" as they are, every other byte
// as %XX.
func cursorFile(name string) (string, error) {
	var b strings.Builder
	b.WriteString(cursorPrefix)
	for i := range len(name) {
		c := name[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("._-", c) >= 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	if name == "" || b.Len() > 200 || strings.HasSuffix(name, ".tmp") {
		return "", fmt.Errorf("journal: %q cannot be a cursor's name", name)
	}
	return b.String(), nil
}

// cursorName is the reverse.
func cursorName(file string) (string, bool) {
	rest, ok := strings.CutPrefix(file, cursorPrefix)
	if !ok {
		return "", false
	}
	var b strings.Builder
	for i := 0; i < len(rest); i++ {
		c := rest[i]
		if c == '%' {
			var x byte
			if i+3 > len(rest) {
				return "", false
			}
			if _, err := fmt.Sscanf(rest[i+1:i+3], "%02X", &x); err != nil {
				return "", false
			}
			c, i = x, i+2
		}
		b.WriteByte(c)
	}
	back, err := cursorFile(b.String())
	return b.String(), err == nil && back == file
}
