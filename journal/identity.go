// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
)

// The identity is written once, in a file of its own: under another name, synced, renamed, the name
// synced. So the file is never there by halves, and nobody is told an identity that a power cut can
// take back.

const (
	identityFile  = "identity"
	identityMagic = "SPILLIDE"
	identityLen   = 32 // bytes of the file
)

var (
	errIdentity = errors.New("identity cannot be read")
	noIdentity  [16]byte
)

// Identity is 16 random bytes that the directory got when it was first opened, and keeps. With a
// [Position] they name a record among those of all journals. A copy of the directory has the same:
// if both are to be appended to, remove the file identity from one. A directory whose identity
// cannot be read gets another one.
//
// It is zero where the disk was full when the directory had yet to get one, which is reported; the
// next Open tries again.
func (d *folder) Identity() [16]byte { return d.identity }

// openIdentity reads the identity, or makes one. Only Open calls it.
func (d *folder) openIdentity() error {
	b, err := d.readIdentity()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var id [16]byte
	if err == nil {
		id, err = parseIdentity(b)
	}
	switch {
	case err == nil:
		// The process that renamed the file may have been killed before it synced the name.
		if err := d.fs.SyncDir(d.dir); err != nil {
			return err
		}
		d.identity = id
		return nil
	case errors.Is(err, errVersion): // as with segments
		return fmt.Errorf("%s: %w", d.path(identityFile), err)
	case !errors.Is(err, fs.ErrNotExist):
		if err := d.moveAside(identityFile, err); err != nil {
			return err
		}
	}
	_, _ = rand.Read(id[:]) // never fails
	switch err := d.writeIdentity(id); {
	case err == nil:
		d.identity = id
		return nil
	case isNoSpace(err): // it must be read to be emptied
		d.opt.Report(fmt.Errorf("journal: %s has no identity until it is opened again: %w", d.dir, err))
		return nil
	default:
		return fmt.Errorf("write identity: %w", err)
	}
}

// readIdentity returns the file's bytes, those that the device gives. An error is that there is no
// file, or that it cannot be opened now.
func (d *folder) readIdentity() ([]byte, error) {
	f, err := d.fs.Open(d.path(identityFile))
	if err != nil {
		return nil, err
	}
	b := make([]byte, identityLen+1)
	n, _ := f.ReadAt(b, 0) // what is missing shows
	return b[:n], f.Close()
}

func (d *folder) writeIdentity(id [16]byte) error {
	tmp := d.path(identityFile + ".tmp")
	_ = d.fs.Remove(tmp) // of an attempt that failed
	f, err := d.fs.Create(tmp)
	if err != nil {
		return err
	}
	if _, err = f.WriteAt(appendIdentity(nil, id), 0); err == nil {
		err = f.Datasync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = d.fs.Rename(tmp, d.path(identityFile))
	}
	if err != nil {
		return errors.Join(err, d.fs.Remove(tmp))
	}
	return d.fs.SyncDir(d.dir)
}

func appendIdentity(b []byte, id [16]byte) []byte {
	b = append(b, identityMagic...)
	b = binary.LittleEndian.AppendUint32(b, formatVersion)
	b = append(b, id[:]...)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// parseIdentity reads the whole of an identity file.
func parseIdentity(b []byte) (id [16]byte, err error) {
	if len(b) < identityLen || string(b[:8]) != identityMagic ||
		crc32.Checksum(b[:28], castagnoli) != binary.LittleEndian.Uint32(b[28:]) {
		return id, errIdentity
	}
	if v := binary.LittleEndian.Uint32(b[8:]); v != formatVersion {
		return id, fmt.Errorf("%w: %d", errVersion, v)
	}
	if len(b) != identityLen || [16]byte(b[12:28]) == noIdentity {
		return id, errIdentity
	}
	return [16]byte(b[12:28]), nil
}
