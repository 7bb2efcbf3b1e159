// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// namesFile says in a data directory which output each cursor of the journal belongs to. It is for
// people: nothing else depends on it.
const namesFile = "outputs.json"

// OutputURLs returns the URLs of the outputs that a data directory was last opened with, by the
// names of their cursors in its journal. It is empty where nothing says so.
func OutputURLs(dir string) (map[string]string, error) {
	b, err := readNames(filepath.Join(dir, namesFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var urls map[string]string
	if err == nil {
		err = json.Unmarshal(b, &urls)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, namesFile), err)
	}
	return urls, nil
}

// mostNames is far more than the URLs of all outputs have.
const mostNames = 1 << 20

// readNames reads a regular file: to open another one might wait for ever.
func readNames(path string) ([]byte, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > mostNames {
		return nil, fmt.Errorf("it is no regular file of at most %d bytes", mostNames)
	}
	return os.ReadFile(path)
}

// writeNames replaces the file, which a crash leaves as it was or as it shall be.
func writeNames(dir string, plans []plan) error {
	urls := make(map[string]string, len(plans))
	for _, p := range plans {
		urls[p.cursor] = p.url
	}
	b, err := json.MarshalIndent(urls, "", "\t")
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
