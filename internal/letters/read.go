// SPDX-License-Identifier: Apache-2.0

package letters

import (
	"os"
	"path/filepath"

	"github.com/spillwaylog/spillway/journal"
)

// Dir is the name of the letters' directory in a data directory.
const Dir = "letters"

// IsStore says whether a directory is one of letters.
func IsStore(dir string) bool {
	return isFile(filepath.Join(dir, cursorFile))
}

// Find returns the directory of letters that dir is, or has in it as a data directory does; false:
// neither.
func Find(dir string) (string, bool) {
	for _, d := range []string{dir, filepath.Join(dir, Dir)} {
		if IsStore(d) {
			return d, true
		}
	}
	return "", false
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// An Entry is a record of a store.
type Entry struct {
	Letter
	Pos   journal.Position // its end, in the letters' own journal
	Bytes int64            // of the record
	Err   error            // why it is no letter: then fields may be missing, and the chunk be empty

	key  key
	gone bool
}

// A Listing is what a directory of letters holds, read without a lock and without changing
// anything. Of a store in use it is a picture that may already have moved on.
type Listing struct {
	*journal.Inspection
	state state
}

// Read looks into a directory of letters.
func Read(dir string) (*Listing, error) {
	i, err := journal.Inspect(dir)
	if err != nil {
		return nil, err
	}
	l := &Listing{Inspection: i}
	for _, c := range i.Cursors {
		if c.Name != cursorName || c.Err != nil {
			continue
		}
		if l.state, err = parseState(c.State, c.Pos); err != nil {
			l.state = state{cursor: c.Pos} // all behind it counts as there
		}
	}
	return l, nil
}

// Letters yields what is there, in order, until yield returns false. What an Entry holds is valid
// during the call.
func (l *Listing) Letters(yield func(*Entry) bool) error {
	return l.each(func(e *Entry) bool { return e.gone || yield(e) })
}

// each yields all that can be read, also what is gone.
func (l *Listing) each(yield func(*Entry) bool) error {
	var e Entry
	return l.Records(func(r journal.Record) bool {
		e.Pos, e.Bytes = r.Pos, int64(len(r.Data))
		e.key, e.Err = e.decode(r.Data)
		e.gone = l.state.gone(e.Output, r.Pos)
		return yield(&e)
	})
}
