// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
)

// checkDirectives refuses what makes "go install" refuse a module, and what only holds in the
// module itself.
func checkDirectives(f *modfile.File) error {
	for _, r := range f.Replace {
		return fmt.Errorf("%s replaces %s: nobody but this repository would build with that", f.Syntax.Name, r.Old)
	}
	for _, e := range f.Exclude {
		return fmt.Errorf("%s excludes %s: \"go install\" refuses such a module", f.Syntax.Name, e.Mod)
	}
	return nil
}

// require returns the go.mod of a nested module as it is released: the root's version stands where
// its folder stood.
func (root *released) require(name string, text []byte) ([]byte, error) {
	f, err := modfile.Parse(name, text, nil)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(f.Require, func(r *modfile.Require) bool { return r.Mod.Path == root.module.Path }) {
		return nil, fmt.Errorf("%s does not require %s", name, root.module.Path)
	}
	if err := f.DropReplace(root.module.Path, ""); err != nil {
		return nil, err
	}
	f.Cleanup()
	if err := checkDirectives(f); err != nil {
		return nil, err
	}
	if err := f.AddRequire(root.module.Path, root.module.Version); err != nil {
		return nil, err
	}
	return f.Format()
}

// addSums returns a go.sum with the root's two hashes, in the order that "go mod tidy" gives it.
func (root *released) addSums(name string, text []byte) ([]byte, error) {
	hash := map[module.Version]string{
		root.module: root.sums.zip,
		{Path: root.module.Path, Version: root.module.Version + "/go.mod"}: root.sums.mod,
	}
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) != 3 {
			return nil, fmt.Errorf("%s: %q", name, line)
		}
		if f[0] != root.module.Path {
			hash[module.Version{Path: f[0], Version: f[1]}] = f[2]
		}
	}
	var versions []module.Version
	for v := range hash {
		versions = append(versions, v)
	}
	module.Sort(versions)
	var out strings.Builder
	for _, v := range versions {
		fmt.Fprintln(&out, v.Path, v.Version, hash[v])
	}
	return []byte(out.String()), nil
}
