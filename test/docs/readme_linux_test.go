// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spillwaylog/spillway/internal/needs"
	"github.com/spillwaylog/spillway/test/internal/rig"
)

// story returns the piece of the README in a language that contains a text.
func story(t *testing.T, language, part string) string {
	t.Helper()
	readme, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	rig.Must(t, err)
	for _, block := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllStringSubmatch(string(readme),
		-1) {
		if strings.Contains(block[1], part) {
			if n := strings.Count(block[1], "\n"); n != 6 {
				t.Errorf("%d lines, where the README says six:\n%s", n, block[1])
			}
			return block[1]
		}
	}
	t.Fatalf("the README has no piece with %q", part)
	return ""
}

// TestProcessesStory runs the README's commands for many processes as they stand there, but for
// addresses and folders.
func TestProcessesStory(t *testing.T) {
	t.Parallel()
	bash, err := exec.LookPath("bash")
	needs.Have(t, err == nil, "bash")
	dir, h := t.TempDir(), rig.NewHome(t)
	bin := filepath.Join(dir, "bin")
	rig.Must(t, os.Mkdir(bin, 0o700))
	rig.Must(t, os.Symlink(rig.Checked.Build(t), filepath.Join(bin, "spillway")))
	address := "forward://" + needs.Address()
	script := strings.NewReplacer(
		"/var/log/", dir+"/",
		"spillway serve", "spillway serve --listen "+address,
		"send --follow", "send --follow --timeout 5m --shm "+h.Shm+" --to "+address,
	).Replace(story(t, "sh", "send --follow"))
	script = `worker() {
	for second in $(seq 10 59); do echo "{\"time\":\"2026-11-21T02:03:${second}Z\",\"msg\":\"worker $1\"}"; done
}
` + script + "kill %1\nwait %1\n"
	cmd := exec.Command(bash, "-c", script)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "TZ=UTC")
	var told strings.Builder
	cmd.Stderr = &told
	out, err := cmd.Output()
	if err != nil {
		t.Errorf("%v\n%s", err, rig.Tail(told.String(), 4000))
	}
	last, seen := "", map[string]int{}
	for line := range strings.Lines(string(out)) {
		if strings.HasSuffix(line, " acked\n") {
			continue
		}
		at, rest, ok := strings.Cut(line, ".000000 ")
		if !ok || at < last {
			t.Fatalf("%q after %s", line, last)
		}
		last = at
		seen[rest]++
	}
	if len(seen) != 3 || seen["stdin worker 1\n"] != 50 || seen["stdin worker 2\n"] != 50 || seen["worker 3\n"] != 50 ||
		strings.Count(string(out), "50 acked\n") != 2 {
		t.Errorf("%v\n%s\n%s", seen, out, rig.Tail(told.String(), 4000))
	}
}

// TestAdaptersStory runs the README's lines for the loggers that people have, each with a call.
func TestAdaptersStory(t *testing.T) {
	t.Parallel()
	s, out := rig.NewSetup(t)
	address := needs.Address()
	s.Listen = []string{"forward://" + address}
	c := rig.StartCollector(t, s)
	h := rig.NewHome(t)
	body := strings.ReplaceAll(story(t, "go", "spillwaylogrus"), "127.0.0.1:24224", address)
	body = strings.Replace(body, ", nil)\n", ", &spillway.Options{Name: \"story\", Shm: "+quoted(h.Shm)+"})\n\tif err != nil {\n\t\treturn err\n\t}\n", 1) + `
	logrus.Info("logrus")
	zap.L().Info("zap")
	zlog.Info().Msg("zerolog")
	glog.Info("logr")
	slog.Info("slog")
	stdlog.Print("log")
	return log.Close(ctx)
`
	program := buildPieces(t, body)
	if text, err := exec.Command(program).CombinedOutput(); err != nil || len(text) > 0 {
		t.Fatalf("%v: %s", err, text)
	}
	rig.WaitLines(t, out, 6)
	c.Stop()
	have := map[string]int{}
	for _, l := range rig.ReadLines(t, out) {
		text, _ := l.Record["msg"].(string)
		have[text]++
	}
	for _, name := range []string{"logrus", "zap", "zerolog", "logr", "slog", "log"} {
		if have[name] != 1 {
			t.Errorf("%v", have)
		}
	}
}

func quoted(s string) string { return `"` + s + `"` }
