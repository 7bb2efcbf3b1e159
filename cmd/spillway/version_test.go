// SPDX-License-Identifier: Apache-2.0

package main

import (
	"runtime/debug"
	"strings"
	"testing"
)

func TestVersionText(t *testing.T) {
	const commit = "742528f1b2c3d4e5f60718293a4b5c6d7e8f9012"
	platform := []debug.BuildSetting{{Key: "GOOS", Value: "linux"}, {Key: "GOARCH", Value: "arm64"}}
	vcs := append([]debug.BuildSetting{
		{Key: "vcs.revision", Value: commit},
		{Key: "vcs.time", Value: "2026-11-22T03:03:01Z"},
	}, platform...)
	for _, c := range []struct {
		name, version string
		settings      []debug.BuildSetting
		short, text   string
	}{
		{"installed", "v0.1.0", platform, "v0.1.0", "spillway v0.1.0\ngo1.26.8 linux/arm64\n"},
		{
			"checkout", "v0.0.0-20261122030301-742528f1b2c3",
			append(vcs, debug.BuildSetting{Key: "vcs.modified", Value: "false"}),
			"v0.0.0-20261122030301-742528f1b2c3",
			"spillway v0.0.0-20261122030301-742528f1b2c3\ncommit " + commit +
				" 2026-11-22T03:03:01Z\ngo1.26.8 linux/arm64\n",
		},
		{
			"changed checkout", "v0.0.0-20261122030301-742528f1b2c3+dirty",
			append(vcs, debug.BuildSetting{Key: "vcs.modified", Value: "true"}),
			"v0.0.0-20261122030301-742528f1b2c3+dirty",
			"spillway v0.0.0-20261122030301-742528f1b2c3+dirty\ncommit " + commit +
				"+dirty 2026-11-22T03:03:01Z\ngo1.26.8 linux/arm64\n",
		},
		{
			"no module version", "(devel)", append(vcs, debug.BuildSetting{Key: "vcs.modified", Value: "true"}),
			"devel-742528f1b2c3+dirty", "spillway devel-742528f1b2c3+dirty\ncommit " + commit +
				"+dirty 2026-11-22T03:03:01Z\ngo1.26.8 linux/arm64\n",
		},
		{
			"short commit", "", append([]debug.BuildSetting{{Key: "vcs.revision", Value: "74"}}, platform...),
			"devel-74",
			"spillway devel-74\ncommit 74\ngo1.26.8 linux/arm64\n",
		},
		{"nothing recorded", "(devel)", platform, "devel", "spillway devel\ngo1.26.8 linux/arm64\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			info := &debug.BuildInfo{
				GoVersion: "go1.26.8", Main: debug.Module{Version: c.version},
				Settings: c.settings,
			}
			if got := moduleVersion(info); got != c.short {
				t.Errorf("%q, want %q", got, c.short)
			}
			if got := versionText(info); got != c.text {
				t.Errorf("%q, want %q", got, c.text)
			}
		})
	}
	word, flag := command(t, "", "version"), command(t, "", "--version")
	if word != flag || word.code != 0 || !strings.HasPrefix(word.out, "spillway "+version()+"\n") {
		t.Errorf("version: %+v; --version: %+v", word, flag)
	}
}

func TestHelp(t *testing.T) {
	for _, args := range []string{"", "serve", "journal", "journal cat", "bench forward", "help"} {
		words := strings.Fields(args)
		word, flag := command(t, "", append([]string{"help"}, words...)...), command(t, "", append(words, "--help")...)
		if word != flag || word.code != 0 || !strings.HasPrefix(word.out, strings.TrimSpace("Usage: spillway "+args)) {
			t.Errorf("help %s: %+v; with --help: %+v", args, word, flag)
		}
	}
	if got := command(t, "", "help", "nothing"); got.code != 2 || got.out != "" ||
		!strings.Contains(got.err, "unexpected argument nothing") {
		t.Errorf("%+v", got)
	}
}
