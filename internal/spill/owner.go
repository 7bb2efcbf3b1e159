// SPDX-License-Identifier: Apache-2.0

package spill

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// ownerFile says in a spill's folder which process made it.
const ownerFile = "owner.json"

const (
	emptyFile = "empty" // in its place while the folder is removed: nothing in it matters any more
	// goneSuffix is behind the name of a folder that is being removed.
	goneSuffix = ".gone"
	// quarantine is where a journal sets aside what it cannot read.
	quarantine = "quarantine"

	maxOwner = 1 << 20 // bytes of an owner's file
)

// An Owner is the process that made a spill.
type Owner struct {
	Identity []byte    `json:"identity"`
	PID      int       `json:"pid"`
	Made     time.Time `json:"made"`
	Ring     string    `json:"ring,omitempty"` // name of its folder
}

// writeOwner writes it whole or not at all.
func writeOwner(dir string, o Owner) error {
	text, err := json.Marshal(o)
	if err != nil {
		return err
	}
	path := filepath.Join(dir, ownerFile)
	if err := os.WriteFile(path+".new", text, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

func (r reach) readOwner(dir string) (Owner, error) {
	var o Owner
	path := filepath.Join(dir, ownerFile)
	f, err := r.open(path)
	if err != nil {
		return o, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxOwner+1))
	switch {
	case err != nil:
		return o, err
	case len(text) > maxOwner:
		return o, fmt.Errorf("spill: %s is too long", path)
	}
	return o, json.Unmarshal(text, &o)
}

// Owners returns those of the spills in a folder, whatever their names. What is just being made or
// removed has none.
func Owners(dir string) (all []Owner, err error) {
	if dir == "" {
		return nil, nil
	}
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if _, ok := spillOf(e.Name()); !ok || !e.IsDir() {
			continue
		}
		path := filepath.Join(dir, e.Name())
		o, err := reach{}.readOwner(path)
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission): // the second is another user's
		case err != nil:
			return nil, fmt.Errorf("%s: whose it is cannot be read: %w", path, err)
		default:
			all = append(all, o)
		}
	}
	return all, nil
}

// spillOf takes the name of a spill's folder apart, which freshName or a ring has given: whose it
// is. false: it is none.
func spillOf(folder string) (name string, ok bool) {
	rest, id := cutLast(folder)
	name, pid := cutLast(rest)
	return name, name != "" && pid != "" && strings.Trim(pid, "0123456789") == "" && len(id) == 16 &&
		strings.Trim(id, "0123456789abcdef") == ""
}

func cutLast(s string) (before, after string) {
	i := max(strings.LastIndexByte(s, '.'), 0)
	return s[:i], strings.TrimPrefix(s[i:], ".")
}
