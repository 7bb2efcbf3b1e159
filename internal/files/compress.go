// SPDX-License-Identifier: Apache-2.0

package files

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// compress replaces a file by its compressed form, as Rotation.Compress says. The compressed one
// has its name only when it is complete and on disk, and the plain one is removed after that; so
// whatever is left by a process that was killed, one of both is whole. A form of another kind of
// compression, left in the same way, is removed before the plain one. A file that somebody has open
// for writing is left for later: errBusy.
func compress(path, how string, stop <-chan struct{}) error {
	from, err := os.OpenFile(path, readFlags, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // somebody else was faster
	}
	if err != nil {
		return err
	}
	defer from.Close()
	info, err := from.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return &fs.PathError{Op: "compress", Path: path, Err: fmt.Errorf("%w: %s", ErrKind, kindOf(info.Mode()))}
	}
	if !lockFile(from, true) {
		return errBusy
	}
	id, err := idOf(from, info)
	if err != nil {
		return err
	}
	if now, _, err := idAt(path); err != nil || now != id {
		return nil // it was compressed before the lock was ours
	}
	form := gzipForm
	if how == "zstd" {
		form = zstdForm
	}
	name := path + unfinishedEnd
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) { // nobody works on it: the lock is ours
		return err
	}
	to, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, info.Mode().Perm())
	if err != nil {
		return err
	}
	err = pack(to, from, how, info, stop)
	if err == nil {
		err = to.Sync() // which may take long; stopping before it would lose what is done
	}
	err = errors.Join(err, to.Close())
	if err == nil {
		err = errors.Join(os.Chmod(name, info.Mode().Perm()), os.Chtimes(name, info.ModTime(), info.ModTime()))
	}
	if err == nil {
		err = os.Rename(name, path+endings[form])
	}
	if err != nil {
		_ = os.Remove(name)
		return err
	}
	other := rotated{path: path}
	other.forms[gzipForm], other.forms[zstdForm] = form != gzipForm, form != zstdForm
	if err := other.removeForms(); err != nil {
		return err
	}
	if removeOpen {
		return os.Remove(path)
	}
	return errors.Join(from.Close(), os.Remove(path))
}

// pack writes a file's content compressed.
func pack(to io.Writer, from io.Reader, how string, info fs.FileInfo, stop <-chan struct{}) error {
	z, err := packer(to, how, info)
	if err != nil {
		return err
	}
	buf := make([]byte, 256<<10)
	for {
		select {
		case <-stop:
			return errStopped
		default:
		}
		n, err := from.Read(buf)
		if n > 0 {
			if _, err := z.Write(buf[:n]); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return z.Close()
		}
		if err != nil {
			return err
		}
	}
}

// packer returns what compresses a file. It has no goroutine: one that is given up needs no Close.
func packer(to io.Writer, how string, info fs.FileInfo) (io.WriteCloser, error) {
	if how == "zstd" {
		return zstd.NewWriter(to, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(zstdWindow),
			zstd.WithZeroFrames(true)) // an empty file becomes one that can be unpacked
	}
	z := gzip.NewWriter(to)
	z.Name, z.ModTime = info.Name(), info.ModTime()
	return z, nil
}

// zstdWindow bounds the memory that zstd takes.
const zstdWindow = 1 << 20
