// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"

	"golang.org/x/mod/module"
	"golang.org/x/mod/semver"
)

// nested are the folders of the modules that are released beside the root's: what others import or
// install. The rest tests and measures.
var nested = []string{"adapter/logr", "adapter/logrus", "adapter/zap", "adapter/zerolog", "cmd", "compat/fluent"}

type options struct {
	repository string // a folder in it
	version    string
	proxy      string // what a proxy serves goes there; empty: nowhere
	dryRun     bool   // no tags
}

// release makes a version, and says what it made.
func release(o *options, out io.Writer) error {
	repo, err := openGit(o.repository)
	if err != nil {
		return err
	}
	if err := o.check(repo); err != nil {
		return err
	}
	beside := "" // the proxy, for a folder is renamed only within its file system
	if o.proxy != "" {
		beside = filepath.Dir(o.proxy)
	}
	work, err := os.MkdirTemp(beside, ".release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	v, err := buildVersion(o.version, repo, work)
	if err != nil {
		return err
	}
	if o.proxy != "" {
		if err := os.Rename(v.proxy, o.proxy); err != nil {
			return err
		}
	}
	if !o.dryRun {
		args := []string{"fetch", "--quiet", "--atomic", "--no-tags", v.clone.dir}
		for _, m := range v.modules {
			args = append(args, "refs/tags/"+m.tag+":refs/tags/"+m.tag)
		}
		if _, err := repo.run(args...); err != nil {
			if o.proxy != "" {
				err = errors.Join(err, os.RemoveAll(o.proxy))
			}
			return err
		}
	}
	return v.report(out, o.dryRun)
}

// check looks at what can be seen before anything is made.
func (o *options) check(repo *git) error {
	if semver.Canonical(o.version) != o.version || o.version == "" || module.IsPseudoVersion(o.version) {
		return fmt.Errorf("%q is no version such as v0.1.0 or v0.1.0-rc.1", o.version)
	}
	dirty, err := repo.run("status", "--porcelain")
	if err != nil {
		return err
	}
	if dirty != "" {
		return fmt.Errorf("a release is of a commit, and these differ from it:\n%s", dirty)
	}
	for _, dir := range append([]string{""}, nested...) {
		tag := path.Join(dir, o.version)
		found, err := repo.run("tag", "--list", tag)
		if err != nil {
			return err
		}
		if found != "" {
			return fmt.Errorf("tag %s exists; a version that somebody may have is never made again", tag)
		}
	}
	if o.proxy != "" {
		if _, err := os.Lstat(o.proxy); !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("-proxy: %s exists; a new folder is needed", o.proxy)
		}
	}
	return nil
}

// checkChangelog wants a heading such as "## v0.1.0".
func checkChangelog(repo *git, version string) error {
	text, err := repo.read("CHANGELOG.md")
	if err != nil {
		return err
	}
	if !regexp.MustCompile(`(?m)^## ` + regexp.QuoteMeta(version) + `(\s|$)`).Match(text) {
		return fmt.Errorf("CHANGELOG.md has no heading \"## %s\": say what is in it, and commit that", version)
	}
	return nil
}
