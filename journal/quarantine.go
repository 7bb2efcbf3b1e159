// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
)

const quarantineDir = "quarantine"

// hole reports bytes that cannot be read and sets a copy of them aside, the first time they are
// met.
func (d *folder) hole(seq uint32, n nonce, path string, f io.ReaderAt, from, to int64, cause error) {
	if !d.holes.first(at(seq, from)) {
		return
	}
	e := &CorruptError{Path: path, Offset: from, Length: to - from, Err: cause}
	saved, err := d.setAside(fmt.Sprintf("%s.%x.%x-%x", filepath.Base(path), n[:4], from, to), f, from, to)
	if err != nil {
		e.Err = errors.Join(cause, fmt.Errorf("copy to quarantine: %w", err))
	}
	e.Saved = saved
	d.tellHole(e)
}

// tellHole counts and tells one region that cannot be read.
func (d *folder) tellHole(e *CorruptError) {
	d.holes.mu.Lock()
	d.holes.count++
	d.holes.bytes += uint64(e.Length)
	d.holes.mu.Unlock()
	d.opt.Report(e)
}

// setAside copies [from,to) of f into quarantine, as far as the file goes. What the device will not
// give is left zero. The copy has its name when it is whole. There is none of what was cut off the
// file.
func (d *folder) setAside(name string, f io.ReaderAt, from, to int64) (string, error) {
	buf := make([]byte, min(to-from, scanBlock))
	if _, err := f.ReadAt(buf[:1], from); errors.Is(err, io.EOF) {
		return "", nil
	}
	path := filepath.Join(d.dir, quarantineDir, name)
	if err := d.fs.MkdirAll(filepath.Dir(path)); err != nil {
		return "", err
	}
	if old, err := d.fs.Open(path); err == nil { // set aside before an earlier restart
		return path, old.Close()
	}
	tmp := path + ".tmp"
	_ = d.fs.Remove(tmp) // of a process that was killed meanwhile
	q, err := d.fs.Create(tmp)
	if err != nil {
		return "", err
	}
	for off := from; off < to && err == nil; off += int64(len(buf)) {
		b := buf[:min(int64(len(buf)), to-off)]
		clear(b)
		if n, rerr := f.ReadAt(b, off); errors.Is(rerr, io.EOF) {
			b, to = b[:n], off
		}
		_, err = q.WriteAt(b, off-from)
	}
	if err == nil {
		err = q.Datasync()
	}
	if err = errors.Join(err, q.Close()); err == nil {
		err = d.fs.Rename(tmp, path)
	}
	if err != nil {
		return "", errors.Join(err, d.fs.Remove(tmp))
	}
	return path, errors.Join(d.fs.SyncDir(filepath.Dir(path)), d.fs.SyncDir(d.dir))
}

// moveAside moves a whole file into quarantine and reports it.
func (d *folder) moveAside(name string, cause error) error {
	e := &CorruptError{Path: d.path(name), Err: cause}
	dir := d.path(quarantineDir)
	if err := d.fs.MkdirAll(dir); err != nil {
		return fmt.Errorf("make quarantine: %w", err)
	}
	// A random name never replaces what was set aside before.
	n := newNonce()
	to := filepath.Join(dir, fmt.Sprintf("%s.%x", name, n[:6]))
	if err := d.fs.Rename(d.path(name), to); err != nil {
		return fmt.Errorf("set %s aside (%w): %w", name, cause, err)
	}
	if err := errors.Join(d.fs.SyncDir(dir), d.fs.SyncDir(d.dir)); err != nil {
		return err
	}
	e.Saved = to
	d.holes.mu.Lock()
	d.holes.files++
	d.holes.mu.Unlock()
	d.opt.Report(e)
	return nil
}
