// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path"
	"path/filepath"
	"time"

	"golang.org/x/mod/module"
	"golang.org/x/mod/sumdb/dirhash"
	"golang.org/x/mod/zip"
)

// hashes are what go.sum says of a version.
type hashes struct{ zip, mod string }

// addToProxy writes a version as a module proxy serves it, from the commit that is checked out;
// folder dir has the module.
func addToProxy(proxy string, m module.Version, from *git, dir string, when time.Time) (hashes, error) {
	var h hashes
	escaped, err := module.EscapePath(m.Path)
	if err != nil {
		return h, err
	}
	folder := filepath.Join(proxy, filepath.FromSlash(escaped), "@v")
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return h, err
	}
	mod, err := from.read(path.Join(dir, "go.mod"))
	if err != nil {
		return h, err
	}
	info, err := json.Marshal(struct {
		Version string
		Time    time.Time
	}{m.Version, when.UTC()})
	if err != nil {
		return h, err
	}
	var archive bytes.Buffer
	if err := zip.CreateFromVCS(&archive, m, from.dir, "HEAD", dir); err != nil {
		return h, err
	}
	for name, content := range map[string][]byte{
		m.Version + ".zip":  archive.Bytes(),
		m.Version + ".mod":  mod,
		m.Version + ".info": info,
		"list":              []byte(m.Version + "\n"),
	} {
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o666); err != nil {
			return h, err
		}
	}
	if h.zip, err = dirhash.HashZip(filepath.Join(folder, m.Version+".zip"), dirhash.Hash1); err != nil {
		return h, err
	}
	h.mod, err = dirhash.Hash1([]string{"go.mod"}, func(string) (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(mod)), nil
	})
	return h, err
}
