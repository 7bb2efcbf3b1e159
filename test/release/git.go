// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// git is the top folder of a working tree.
type git struct {
	dir string
	env []string // besides the process's own
}

// openGit finds the working tree that a folder lies in.
func openGit(dir string) (*git, error) {
	top, err := (&git{dir: dir}).run("rev-parse", "--show-toplevel")
	return &git{dir: top}, err
}

// run returns what a git command prints.
func (g *git) run(args ...string) (string, error) {
	var out, errs bytes.Buffer
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Env = g.dir, append(os.Environ(), g.env...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(errs.String()))
	}
	return strings.TrimSpace(out.String()), nil
}

// identity is "name <address> seconds zone", as git prints it.
var identity = regexp.MustCompile(`^(.*) <(.*)> \d+ \S+$`)

// clone makes a clone at a commit, for the same person: a clone has no settings of its repository.
func (g *git) clone(dir, commit string) (*git, error) {
	who, err := g.run("var", "GIT_COMMITTER_IDENT")
	if err != nil {
		return nil, err
	}
	m := identity.FindStringSubmatch(who)
	if m == nil {
		return nil, fmt.Errorf("git var GIT_COMMITTER_IDENT: %q", who)
	}
	if _, err := g.run("clone", "--quiet", "--shared", "--no-checkout", g.dir, dir); err != nil {
		return nil, err
	}
	c := &git{dir: dir, env: []string{
		"GIT_AUTHOR_NAME=" + m[1], "GIT_AUTHOR_EMAIL=" + m[2],
		"GIT_COMMITTER_NAME=" + m[1], "GIT_COMMITTER_EMAIL=" + m[2],
	}}
	_, err = c.run("checkout", "--quiet", "--detach", commit)
	return c, err
}

// read returns a file of the working tree.
func (g *git) read(name string) ([]byte, error) {
	return os.ReadFile(filepath.Join(g.dir, filepath.FromSlash(name)))
}

// edit changes a file of the working tree.
func (g *git) edit(name string, change func(name string, text []byte) ([]byte, error)) error {
	text, err := g.read(name)
	if err != nil {
		return err
	}
	if text, err = change(name, text); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(g.dir, filepath.FromSlash(name)), text, 0o666)
}
