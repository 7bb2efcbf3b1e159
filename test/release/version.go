// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"path"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
)

// A version is a release in a clone that nobody else sees.
type version struct {
	clone   *git
	proxy   string // a folder
	number  string
	modules []released
}

type released struct {
	module module.Version
	tag    string
	commit string
	sums   hashes
}

// buildVersion makes a version of the commit that is checked out, in a folder.
func buildVersion(number string, repo *git, work string) (*version, error) {
	work, err := filepath.EvalSymlinks(work) // package zip takes a repository only under the name that git gives it
	if err != nil {
		return nil, err
	}
	if work, err = filepath.Abs(work); err != nil {
		return nil, err
	}
	commit, err := repo.run("rev-parse", "HEAD")
	if err != nil {
		return nil, err
	}
	clone, err := repo.clone(filepath.Join(work, "clone"), commit)
	if err != nil {
		return nil, err
	}
	if err := checkChangelog(clone, number); err != nil {
		return nil, err
	}
	text, err := clone.read("go.mod")
	if err != nil {
		return nil, err
	}
	f, err := modfile.Parse("go.mod", text, nil)
	if err != nil {
		return nil, err
	}
	if err := checkDirectives(f); err != nil {
		return nil, err
	}
	v := &version{clone: clone, proxy: filepath.Join(work, "proxy"), number: number}
	if err := v.add("", f.Module.Mod.Path); err != nil {
		return nil, err
	}
	if err := v.requireRoot(); err != nil {
		return nil, err
	}
	for _, dir := range nested {
		if err := v.add(dir, path.Join(f.Module.Mod.Path, dir)); err != nil {
			return nil, err
		}
	}
	return v, nil
}

// add tags the commit that is checked out and puts its module into the proxy.
func (v *version) add(dir, name string) error {
	m := released{module: module.Version{Path: name, Version: v.number}, tag: path.Join(dir, v.number)}
	if err := module.Check(name, v.number); err != nil {
		return err
	}
	if _, err := v.clone.run("tag", "--annotate", "-m", name+" "+v.number, m.tag); err != nil {
		return err
	}
	shown, err := v.clone.run("show", "--no-patch", "--format=%H %cI", "HEAD")
	if err != nil {
		return err
	}
	commit, date, _ := strings.Cut(shown, " ")
	when, err := time.Parse(time.RFC3339, date)
	if err != nil {
		return err
	}
	m.commit = commit
	m.sums, err = addToProxy(v.proxy, m.module, v.clone, dir, when)
	v.modules = append(v.modules, m)
	return err
}

// requireRoot makes the commit on which the nested modules require the root's version.
func (v *version) requireRoot() error {
	root := &v.modules[0]
	for _, dir := range nested {
		if err := v.clone.edit(path.Join(dir, "go.mod"), root.require); err != nil {
			return err
		}
		if err := v.clone.edit(path.Join(dir, "go.sum"), root.addSums); err != nil {
			return err
		}
	}
	_, err := v.clone.run("commit", "--quiet", "--all", "-m",
		strings.Join(nested, ", ")+": require "+v.number+
			"\n\nOn no branch: this commit has the tags of the modules that are released beside the root's.")
	return err
}

// report says what there is, and how it is published.
func (v *version) report(out io.Writer, dryRun bool) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	tags := make([]string, len(v.modules))
	for i, m := range v.modules {
		tags[i] = m.tag
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", m.tag, m.commit[:12], m.module.Path, m.sums.zip)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	next := "published by: git push --atomic origin " + strings.Join(tags, " ")
	if dryRun {
		next = "dry run: no tag was made"
	}
	_, err := fmt.Fprintln(out, next)
	return err
}
