// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"sync"
)

// holes are the places of damage met since Open, so that several readers report and copy one only
// once.
type holes struct {
	mu   sync.Mutex
	seen map[Position]bool
}

func (h *holes) first(p Position) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.seen[p] {
		return false
	}
	if h.seen == nil {
		h.seen = map[Position]bool{}
	}
	h.seen[p] = true
	return true
}

const quarantineDir = "quarantine"

// hole reports bytes that cannot be read and sets a copy of them aside, the first time they are
// met.
func (j *Journal) hole(seq uint32, n nonce, path string, f io.ReaderAt, from, to int64, cause error) {
	if !j.holes.first(at(seq, from)) {
		return
	}
	e := &CorruptError{Path: path, Offset: from, Length: to - from, Err: cause}
	saved, err := j.setAside(fmt.Sprintf("%s.%x.%x-%x", filepath.Base(path), n[:4], from, to), f, from, to)
	if err != nil {
		e.Err = errors.Join(cause, fmt.Errorf("copy to quarantine: %w", err))
	}
	e.Saved = saved
	j.tellHole(e)
}

// setAside copies [from,to) of f into quarantine. What the device will not give is left zero.
func (j *Journal) setAside(name string, f io.ReaderAt, from, to int64) (string, error) {
	path := filepath.Join(j.dir, quarantineDir, name)
	if err := j.fs.MkdirAll(filepath.Dir(path)); err != nil {
		return "", err
	}
	q, err := j.fs.Create(path)
	if err != nil {
		if old, oerr := j.fs.Open(path); oerr == nil { // set aside before an earlier restart
			return path, old.Close()
		}
		return "", err
	}
	buf := make([]byte, min(to-from, scanBlock))
	for off := from; off < to && err == nil; off += int64(len(buf)) {
		b := buf[:min(int64(len(buf)), to-off)]
		clear(b)
		_, _ = f.ReadAt(b, off)
		_, err = q.WriteAt(b, off-from)
	}
	if err == nil {
		err = q.Datasync()
	}
	if err = errors.Join(err, q.Close()); err == nil {
		err = errors.Join(j.fs.SyncDir(filepath.Dir(path)), j.fs.SyncDir(j.dir))
	}
	if err != nil {
		return "", errors.Join(err, j.fs.Remove(path))
	}
	return path, nil
}

// moveAside moves a whole file into quarantine and reports it.
func (j *Journal) moveAside(name string, cause error) error {
	e := &CorruptError{Path: j.path(name), Err: cause}
	dir := j.path(quarantineDir)
	if err := j.fs.MkdirAll(dir); err != nil {
		return fmt.Errorf("make quarantine: %w", err)
	}
	// A random name never replaces what was set aside before.
	n := newNonce()
	to := filepath.Join(dir, fmt.Sprintf("%s.%x", name, n[:6]))
	if err := j.fs.Rename(j.path(name), to); err != nil {
		return fmt.Errorf("set %s aside (%w): %w", name, cause, err)
	}
	if err := errors.Join(j.fs.SyncDir(dir), j.fs.SyncDir(j.dir)); err != nil {
		return err
	}
	e.Saved = to
	j.mu.Lock()
	j.count.filesAside++
	j.mu.Unlock()
	j.opt.Report(e)
	return nil
}
