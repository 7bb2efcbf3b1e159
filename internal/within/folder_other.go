// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package within

import (
	"io/fs"
	"os"
	"time"
)

// A Folder is open; here none can be.
type Folder struct{}

// An Entry is what has a name in a folder.
type Entry struct {
	Name     string
	Dir      bool
	Regular  bool
	Size     int64
	Modified time.Time
}

func Open(string) (*Folder, error)    { return nil, ErrUnsupported }
func OpenAny(string) (*Folder, error) { return nil, ErrUnsupported }
func Walk(string) (*Folder, error)    { return nil, ErrUnsupported }

func (*Folder) Path() string                           { return "" }
func (*Folder) UID() int                               { return -1 }
func (*Folder) Mode() fs.FileMode                      { return 0 }
func (*Folder) Close() error                           { return nil }
func (*Folder) Again() (*Folder, error)                { return nil, ErrUnsupported }
func (*Folder) Enter(string) (*Folder, error)          { return nil, ErrUnsupported }
func (*Folder) Sub(string) (*Folder, error)            { return nil, ErrUnsupported }
func (*Folder) OpenFile(string, int) (*os.File, error) { return nil, ErrUnsupported }
func (*Folder) Mkdir(string) error                     { return ErrUnsupported }
func (*Folder) Lstat(string) (Entry, error)            { return Entry{}, ErrUnsupported }
func (*Folder) Is(string, *os.File) bool               { return false }
func (*Folder) Leads(string, *Folder) bool             { return false }
func (*Folder) Names(int) ([]string, error)            { return nil, ErrUnsupported }
func (*Folder) List() ([]Entry, error)                 { return nil, ErrUnsupported }
func (*Folder) Rename(string, string) error            { return ErrUnsupported }
func (*Folder) Move(string, *Folder, string) error     { return ErrUnsupported }
func (*Folder) Remove(string) error                    { return ErrUnsupported }
func (*Folder) RemoveDir(string) error                 { return ErrUnsupported }
func (*Folder) RemoveAll(string) error                 { return ErrUnsupported }
func (*Folder) Sync() error                            { return ErrUnsupported }
