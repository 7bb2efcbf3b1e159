// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"github.com/spillwaylog/spillway/internal/await"
	"github.com/spillwaylog/spillway/journal"
)

// The repeats file: a header, then a record for each stored chunk that asked
// for an ack. Integers are little-endian.
//
//	header  ┌──────────────────┬──────────┬─────────┐
//	        │ "SPWREPT1"   8 B │ key 16 B │ crc 4 B │
//	        └──────────────────┴──────────┴─────────┘
//	record  ┌────────────┬─────────┬────────────┬─────────┐
//	        │ hash  16 B │ pos 8 B │ time   4 B │ crc 4 B │
//	        └────────────┴─────────┴────────────┴─────────┘
//
// The file is written seldom and always after the journal: its cursor in the
// journal says up to where it is complete, and what lies behind is read from
// the journal at the next start. It is appended to until it is twice as long as
// the window (48 MiB), then written anew beside and renamed. A fingerprint gets into
// it only when its chunk is durable: after a power cut a sender would be told
// that the journal has what it has lost.

const (
	seenMagic      = "SPWREPT1"
	seenHeaderSize = 8 + keySize + 4
	keySize        = 16
	seenRecordSize = 16 + 8 + 4 + 4
	repeatsCursor  = "repeats"
	saveBytes      = maxUnsaved / 4 // so much is saved soon
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func appendSum(b []byte, from int) []byte {
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b[from:], castagnoli))
}

// cutSum returns b without its checksum, and whether that is right.
func cutSum(b []byte) ([]byte, bool) {
	body := b[:len(b)-4]
	return body, binary.LittleEndian.Uint32(b[len(b)-4:]) == crc32.Checksum(body, castagnoli)
}

func appendSeen(b []byte, p fingerprint, pos journal.Position, at uint32) []byte {
	from := len(b)
	b = append(b, p[:]...)
	b = binary.LittleEndian.AppendUint64(b, uint64(pos))
	b = binary.LittleEndian.AppendUint32(b, at)
	return appendSum(b, from)
}

// repeatsFile keeps a repeats window across restarts.
type repeatsFile struct {
	*repeats
	journal *journal.Journal
	path    string
	key     []byte
	file    *os.File // nil: there was no room for one yet
	size    int64
	stale   bool // a write failed: the file lacks fingerprints that unsaved no longer has
	cursor  *journal.Reader
	saved   journal.Position
}

// openRepeats loads the window from dir and completes it from the journal. A
// file that cannot be read is set aside and told to report: then only what the
// journal still holds is recognised. A full disk does not keep it from opening:
// the journal, which fills the disk, must be read to be emptied.
func openRepeats(dir string, j *journal.Journal, report func(error)) (*repeatsFile, error) {
	f := &repeatsFile{journal: j, path: filepath.Join(dir, "repeats")}
	err := f.open()
	if errors.Is(err, errNoRepeats) {
		aside := fmt.Sprintf("%s.unreadable.%d", f.path, time.Now().UnixNano())
		report(fmt.Errorf("%s: %w; set aside as %s", f.path, err, aside))
		err = os.Rename(f.path, aside)
	}
	if err != nil {
		return nil, err
	}
	if f.cursor, err = j.Reader(repeatsCursor); err != nil {
		return nil, err
	}
	if err := f.keep(j); err != nil {
		return nil, err
	}
	f.saved, _ = f.cursor.Committed()
	if err := f.replay(f.cursor.TryNext); err != nil {
		return nil, err
	}
	if err = f.openOld(); err == nil {
		f.stale = true
		err = f.save(j.Synced())
	}
	if errors.Is(err, journal.ErrFull) {
		report(f.later(err))
		err = nil
	}
	return f, err
}

// openOld keeps the file that there is, if one is, for the case that there is
// no room for another.
func (f *repeatsFile) openOld() error {
	file, err := os.OpenFile(f.path, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	size, err := file.Seek(0, io.SeekEnd)
	if err != nil || size < seenHeaderSize { // it has no key yet
		return errors.Join(err, file.Close())
	}
	f.file, f.size = file, size-(size-seenHeaderSize)%seenRecordSize // the last one was being written
	return nil
}

// later says that what could not be saved will be.
func (f *repeatsFile) later(err error) error {
	return fmt.Errorf("%s: %w; chunks acked since the last save are recognised from the journal", f.path, err)
}

// keep has the cursor keep the key, for the fingerprints in the journal mean nothing
// without it. Where the file is gone, the key is had from there, and the cursor
// begins again at the oldest record.
func (f *repeatsFile) keep(j *journal.Journal) (err error) {
	_, key := f.cursor.Committed()
	lost := f.repeats == nil && len(key) == keySize
	if f.repeats == nil {
		if f.key = key; !lost {
			f.key = make([]byte, keySize)
			rand.Read(f.key)
		}
		if f.repeats, err = newRepeats(f.key); err != nil {
			return err
		}
	}
	if lost { // in one step: nothing else has the key
		if err := errors.Join(f.cursor.Close(), j.PlaceCursor(repeatsCursor, 0, f.key)); err != nil {
			return err
		}
		f.cursor, err = j.Reader(repeatsCursor)
		return err
	}
	if bytes.Equal(key, f.key) {
		return nil
	}
	return f.cursor.Commit(f.cursor.Pos(), f.key)
}

// open loads the file, if there is one.
func (f *repeatsFile) open() error {
	old, err := os.Open(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer old.Close()
	r := bufio.NewReaderSize(old, 64<<10)
	if f.key, err = readSeenHeader(r); err != nil || f.key == nil {
		return err
	}
	if f.repeats, err = newRepeats(f.key); err != nil {
		return err
	}
	return f.load(r, f.journal.Synced())
}

// errNoRepeats says that a file is not what it should be.
var errNoRepeats = errors.New("not a repeats file")

// readSeenHeader returns the key; none when there is not a byte, for then there
// is no file yet.
func readSeenHeader(r io.Reader) (key []byte, err error) {
	b := make([]byte, seenHeaderSize)
	switch _, err := io.ReadFull(r, b); {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return nil, errNoRepeats
	case errors.Is(err, io.EOF):
		return nil, nil
	case err != nil:
		return nil, err
	}
	if string(b[:8]) != seenMagic {
		return nil, errNoRepeats
	}
	head, ok := cutSum(b)
	if !ok {
		return nil, fmt.Errorf("%w: the checksum of its header is wrong", errNoRepeats)
	}
	return head[8:], nil
}

// load takes what is whole, young enough, and of chunks in the journal, which is
// durable up to synced. A record that is not whole was being written when the
// machine stopped; the journal has it.
func (f *repeatsFile) load(records io.Reader, synced journal.Position) error {
	horizon := uint32(max(0, f.now().Add(-repeatAge).Unix()))
	b := make([]byte, seenRecordSize)
	for {
		if _, err := io.ReadFull(records, b); err != nil {
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				return nil
			}
			return err
		}
		body, ok := cutSum(b)
		if !ok {
			continue
		}
		pos := journal.Position(binary.LittleEndian.Uint64(body[16:]))
		if pos > synced { // an earlier version wrote it, and the power went
			continue
		}
		if at := binary.LittleEndian.Uint32(body[24:]); at >= horizon {
			f.learn(fingerprint(body[:16]), pos, at)
		}
	}
}

// replay adds the fingerprints of the records that the file may lack.
func (f *repeatsFile) replay(next func() (journal.Record, bool, error)) error {
	at := uint32(f.now().Unix())
	return replay(next, func(rec journal.Record) {
		if p := fingerprintIn(rec.Data); len(p) == len(fingerprint{}) {
			f.learn(fingerprint(p), rec.Pos, at)
		}
	})
}

// replay hands on the records that there are. What the disk does not give is tried again: the
// journal skips it in the end, and what else it holds must not wait for that for ever.
func replay(next func() (journal.Record, bool, error), each func(journal.Record)) error {
	for tries := replayTries; ; {
		rec, ok, err := next()
		if err != nil {
			if tries--; tries == 0 || errors.Is(err, journal.ErrClosed) {
				return err
			}
			_ = await.Pause(context.Background(), retryPause)
			continue
		}
		if !ok {
			return nil
		}
		tries = replayTries
		each(rec)
	}
}

// replayTries is more often than a reader of the journal returns an error of
// the disk before it goes on behind it.
const replayTries = 8

// rewrite writes what of the window is durable to a new file and puts it in place of the old one.
func (f *repeatsFile) rewrite(durable journal.Position) error {
	temp := f.path + ".new"
	file, err := os.OpenFile(temp, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	b := append([]byte(seenMagic), f.key...)
	size, err := f.writeWindow(file, appendSum(b, 0), 0, durable)
	if err == nil {
		err = file.Sync()
	}
	if err == nil {
		err = os.Rename(temp, f.path)
	}
	if err == nil {
		err = syncDir(filepath.Dir(f.path))
	}
	if err != nil {
		file.Close()
		_ = os.Remove(temp) // a full disk needs what it took
		return err
	}
	if f.file != nil {
		f.file.Close()
	}
	f.file, f.size = file, size
	return nil
}

// writeWindow writes b and what the window has of records behind after and up to durable, a block
// at a time; those behind that stay in unsaved. What is stored meanwhile stands there too, and
// perhaps in the window as well, which learn is not affected.
func (f *repeatsFile) writeWindow(w io.Writer, b []byte, after, durable journal.Position) (size int64, err error) {
	f.mu.Lock()
	f.unsaved, f.overrun = f.unsaved[:0], false
	n, oldest := f.slots.n, f.oldest
	f.mu.Unlock()
	for i := 0; ; {
		written, err := w.Write(b)
		size += int64(written)
		if err != nil || i == n {
			return size, err
		}
		b = b[:0]
		f.mu.Lock()
		for end := min(n, i+blockSlots); i < end; i++ {
			switch s := f.slots.at((oldest + i) % n); {
			case s.stored == 0 || s.pos <= after:
			case s.pos > durable:
				f.noteUnsavedLocked(s.fingerprint, s.pos, s.at)
			default:
				b = appendSeen(b, s.fingerprint, s.pos, s.at)
			}
		}
		f.mu.Unlock()
	}
}

// save brings the file up to what the journal holds durably, and then lets the
// journal forget it. After an error the journal keeps it, and the next save
// writes the whole window anew.
func (f *repeatsFile) save(synced journal.Position) error {
	f.mu.Lock()
	settled := f.settled(synced)
	unsaved := f.unsaved
	f.unsaved, f.spare = f.spare[:0], unsaved[:0]
	f.stale = f.stale || f.overrun
	f.overrun = false
	f.mu.Unlock()
	unsaved = f.durable(unsaved, synced)
	if len(unsaved) > 0 || f.stale {
		err := f.write(unsaved, synced)
		f.stale = err != nil
		if err != nil {
			return err
		}
	}
	if settled <= f.saved {
		return nil
	}
	f.cursor.SkipTo(settled)
	if err := f.cursor.Commit(settled, f.key); err != nil {
		return err
	}
	f.saved = settled
	return nil
}

// durable returns those of the records of fingerprints whose chunks lie up to synced,
// in place, and has the others wait on.
func (f *repeatsFile) durable(unsaved []byte, synced journal.Position) []byte {
	n, wait := 0, []byte(nil)
	for i := 0; i < len(unsaved); i += seenRecordSize {
		rec := unsaved[i : i+seenRecordSize]
		if journal.Position(binary.LittleEndian.Uint64(rec[16:])) > synced {
			wait = append(wait, rec...)
		} else {
			n += copy(unsaved[n:], rec)
		}
	}
	if len(wait) > 0 {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.overrun = f.overrun || len(f.unsaved)+len(wait) > maxUnsaved; !f.overrun {
			f.unsaved = append(f.unsaved, wait...)
		}
	}
	return unsaved[:n]
}

// write adds to the file, or writes it anew, as far as it is durable. Where
// there is no room for that, the file gets what it lacks once more, and grows
// until there is.
func (f *repeatsFile) write(unsaved []byte, durable journal.Position) error {
	if !f.stale && f.size+int64(len(unsaved)) <= 2*repeatCount*seenRecordSize {
		return f.journal.WithReserve(func() error {
			return f.add(func(w io.Writer) (int64, error) {
				n, err := w.Write(unsaved)
				return int64(n), err
			})
		})
	}
	err := f.journal.WithReserve(func() error { return f.rewrite(durable) })
	if f.file == nil || !errors.Is(err, journal.ErrFull) {
		return err
	}
	return f.journal.WithReserve(func() error {
		return f.add(func(w io.Writer) (int64, error) { return f.writeWindow(w, nil, f.saved, durable) })
	})
}

// add appends what write writes. Where that fails, the next one goes over it.
func (f *repeatsFile) add(write func(io.Writer) (int64, error)) error {
	n, err := write(io.NewOffsetWriter(f.file, f.size))
	if err == nil {
		err = f.file.Sync()
	}
	if err == nil {
		f.size += n
	}
	return err
}

// syncDir makes a rename durable.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" { // which cannot sync a directory
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
		err = nil // a file system that keeps directories in order itself
	}
	return errors.Join(err, d.Close())
}
