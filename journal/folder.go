// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"time"
)

// folder is the journal's directory, and how it is reached. Open sets it; only holes change.
type folder struct {
	dir      string
	fs       FS
	opt      Options
	lock     io.Closer
	identity [16]byte
	holes    holes
}

func (d *folder) path(name string) string { return filepath.Join(d.dir, name) }

// makeDir makes the directory, and its name durable: what is synced within it would be lost with
// it.
func (d *folder) makeDir() error {
	var parents []string
	for dir := d.dir; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if _, err := d.fs.ReadDir(dir); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		parents = append(parents, filepath.Dir(dir))
	}
	if err := d.fs.MkdirAll(d.dir); err != nil {
		return err
	}
	if len(parents) == 0 {
		// A process that was killed may have made it, and the folder around it, and synced neither
		// name.
		for dir, n := filepath.Dir(d.dir), 0; n < 2; dir, n = filepath.Dir(dir), n+1 {
			_ = d.fs.SyncDir(dir) // this process may not be allowed to
		}
	}
	for _, dir := range parents {
		// A user with the right to write there may lack that to read, without which it cannot be
		// synced.
		if err := d.fs.SyncDir(dir); err != nil && !errors.Is(err, fs.ErrPermission) {
			return err
		}
	}
	return nil
}

const (
	openTries = 50 // of reading what decides about a whole file
	openPause = 200 * time.Millisecond
)

// readAt reads bytes of a file, as far as there are some. A device that fails may recover: neither
// must a file be set aside for an error that passes, nor a tail be taken for none.
func (d *folder) readAt(f File, b []byte, off int64) error {
	for tries := 1; ; tries++ {
		_, err := f.ReadAt(b, off)
		if err == nil || errors.Is(err, io.EOF) {
			return nil
		}
		if tries == openTries {
			return err
		}
		if tries == 1 {
			d.opt.Report(fmt.Errorf("journal: open: %w; it is tried again for %v", err, openTries*openPause))
		}
		<-time.After(openPause)
	}
}

// blank reports whether a file is all zeros.
func blank(f File, size int64) bool {
	buf := make([]byte, scanBlock)
	for off := int64(0); off < size; off += int64(len(buf)) {
		n, err := f.ReadAt(buf, off)
		if err != nil && !errors.Is(err, io.EOF) || len(bytes.TrimLeft(buf[:n], "\x00")) > 0 {
			return false
		}
	}
	return true
}
