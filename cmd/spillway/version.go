// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"runtime/debug"
	"strings"
)

type versionCmd struct{}

func (versionCmd) Run(s *streams) error {
	_, err := io.WriteString(s.out, versionText(buildInfo()))
	return err
}

// buildInfo is what the build recorded, nothing at the worst.
func buildInfo() *debug.BuildInfo {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{GoVersion: "an unknown Go"}
	}
	return info
}

// version names the build in a word: a release's tag, the commit of a checkout, or devel.
func version() string { return moduleVersion(buildInfo()) }

func moduleVersion(info *debug.BuildInfo) string {
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	if commit := setting(info, "vcs.revision"); commit != "" {
		return "devel-" + commit[:min(12, len(commit))] + dirty(info)
	}
	return "devel"
}

// versionText is all that can be said of a build. A module that was installed by its version knows
// no commit.
func versionText(info *debug.BuildInfo) string {
	var b strings.Builder
	fmt.Fprintln(&b, "spillway", moduleVersion(info))
	if commit := setting(info, "vcs.revision"); commit != "" {
		fmt.Fprintln(&b, strings.TrimSpace("commit "+commit+dirty(info)+" "+setting(info, "vcs.time")))
	}
	fmt.Fprintf(&b, "%s %s/%s\n", info.GoVersion, setting(info, "GOOS"), setting(info, "GOARCH"))
	return b.String()
}

// dirty marks files that differ from the commit, as the go command does.
func dirty(info *debug.BuildInfo) string {
	if setting(info, "vcs.modified") == "true" {
		return "+dirty"
	}
	return ""
}

func setting(info *debug.BuildInfo, key string) string {
	for _, s := range info.Settings {
		if s.Key == key {
			return s.Value
		}
	}
	return ""
}
