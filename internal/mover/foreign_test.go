// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"os"
	"path/filepath"
	"testing"
)

// Folders in Dir that nobody of ours made are left as they are, whatever they are called.
func TestForeignFolders(t *testing.T) {
	dir := t.TempDir()
	const id = "0123456789abcdef"
	foreign := []string{"test.data", "test.1.2", "test." + id, "test.1." + id + ".old", "test.2." + id}
	for _, name := range foreign {
		path := filepath.Join(dir, name)
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(path, "precious"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"test.3." + id, "test.4." + id} { // whoever made these died at once
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "test.4."+id, ownerFile+".new"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	f := open(t, &fake{}, func(c *Config) { c.Dir = dir })
	f.must("a", 1, 0, 10, 10)
	f.close()
	for _, name := range foreign {
		if names := entriesOf(t, filepath.Join(dir, name)); len(names) != 1 || names[0] != "precious" {
			t.Errorf("%s now holds %q", name, names)
		}
	}
	if names := entriesOf(t, dir); len(names) != len(foreign) {
		t.Errorf("left %q", names)
	}
}
