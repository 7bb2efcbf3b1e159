// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spillwaylog/spillway/internal/codes"
)

// namesFile says in a data directory which output each cursor of the journal belongs to. It is for
// people, and for the start to tell of a cursor that is gone: nothing else depends on it.
//
//	{"out.audit": {"name": "audit", "url": "file:///var/log/audit.jsonl"}, …}
//
// Up to version 0.1 there was the URL alone in place of {…}.
const namesFile = "outputs.json"

// OutputEnds returns the outputs that a data directory was last opened with, by the names of their
// cursors in its journal. It is empty where nothing says so.
func OutputEnds(dir string) (map[string]End, error) {
	b, err := readNames(filepath.Join(dir, namesFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var outputs map[string]named
	if err == nil {
		err = json.Unmarshal(b, &outputs)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, namesFile), err)
	}
	ends := make(map[string]End, len(outputs))
	for cursor, o := range outputs {
		ends[cursor] = End(o)
	}
	return ends, nil
}

// named is an output in the file.
type named struct {
	Name string `json:"name,omitempty"`
	URL  string `json:"url"`
}

// UnmarshalJSON reads the form of old files too.
func (n *named) UnmarshalJSON(b []byte) error {
	if json.Unmarshal(b, &n.URL) == nil {
		return nil
	}
	type plain named // without this method
	return json.Unmarshal(b, (*plain)(n))
}

// maxNames is far more than the URLs of all outputs have.
const maxNames = 1 << 20

// readNames reads a regular file: to open another one might wait for ever.
func readNames(path string) ([]byte, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxNames {
		return nil, fmt.Errorf("it is no regular file of at most %d bytes", maxNames)
	}
	return os.ReadFile(path)
}

// noteNames writes down which outputs have a place in the journal.
func (c *Collector) noteNames() {
	var plans []plannedOutput
	for _, p := range *c.backlogs.pumps.Load() {
		if !p.gone.Load() {
			plans = append(plans, *p.plan)
		}
	}
	if err := writeNames(c.config.Dir, plans); err != nil {
		c.reporter.report(codes.DirectoryError, "data directory", err)
	}
}

// writeNames replaces the file, which a crash leaves as it was or as it shall be.
func writeNames(dir string, plans []plannedOutput) error {
	outputs := make(map[string]named, len(plans))
	for _, p := range plans {
		n := named{URL: p.url}
		if p.name != p.url {
			n.Name = p.name
		}
		outputs[p.cursor] = n
	}
	b, err := json.MarshalIndent(outputs, "", "\t")
	if err != nil {
		return err
	}
	path := filepath.Join(dir, namesFile)
	_ = os.Remove(path + ".new")                                                 // a crash left it
	f, err := os.OpenFile(path+".new", os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) // which follows no link
	if err != nil {
		return err
	}
	_, err = f.Write(append(b, '\n'))
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	return err
}
