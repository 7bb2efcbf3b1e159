// SPDX-License-Identifier: Apache-2.0

package spill

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
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

	mostOwner = 1 << 20 // bytes of an owner's file
)

// owner is what the owner's file in a spill says.
type owner struct {
	Identity []byte    `json:"identity"`
	PID      int       `json:"pid"`
	Made     time.Time `json:"made"`
	Ring     string    `json:"ring,omitempty"` // name of its folder
}

// writeOwner writes it whole or not at all.
func writeOwner(dir string, o owner) error {
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

func (r reach) readOwner(dir string) (owner, error) {
	var o owner
	path := filepath.Join(dir, ownerFile)
	f, err := r.open(path)
	if err != nil {
		return o, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, mostOwner+1))
	switch {
	case err != nil:
		return o, err
	case len(text) > mostOwner:
		return o, fmt.Errorf("spill: %s is too long", path)
	}
	return o, json.Unmarshal(text, &o)
}
