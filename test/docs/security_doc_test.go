// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spillwaylog/spillway/internal/needs"
	"github.com/spillwaylog/spillway/test/internal/rig"
)

// shellBlocks returns the blocks of shell commands of a page.
func shellBlocks(t testing.TB, page string) string {
	t.Helper()
	b, err := os.ReadFile(page)
	rig.Must(t, err)
	var script strings.Builder
	in := false
	for l := range strings.Lines(string(b)) {
		switch {
		case strings.HasPrefix(l, "```sh"):
			in = true
		case strings.HasPrefix(l, "```"):
			in = false
		case in:
			script.WriteString(l)
		}
	}
	return script.String()
}

// TestSecurityPage runs the commands of docs/security.md as they stand there, but for the port.
func TestSecurityPage(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"bash", "openssl"} {
		_, err := exec.LookPath(program)
		needs.Have(t, err == nil, "%s is missing: apt-get install %s", program, program)
	}
	script := shellBlocks(t, filepath.Join("..", "..", "docs", "security.md"))
	if n := strings.Count(script, ":24224"); n != 2 {
		t.Fatalf("the page names port 24224 %d times, want 2:\n%s", n, script)
	}
	script = strings.ReplaceAll(script, ":24224", fmt.Sprintf(":%d", needs.Port("127.0.0.1")))
	script += `
for i in {1..600}; do grep -q "credentials reloaded" said && break; sleep 0.1; done
kill $!
wait $!
`
	dir := t.TempDir()
	rig.Must(t, os.Mkdir(filepath.Join(dir, "bin"), 0o700))
	rig.Must(t, os.Symlink(mustAbs(t, rig.Checked.Build(t)), filepath.Join(dir, "bin", "spillway")))
	said, err := os.Create(filepath.Join(dir, "said"))
	rig.Must(t, err)
	defer said.Close()
	cmd := exec.Command("bash", "-e", "-c", script)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PATH="+filepath.Join(dir, "bin")+string(os.PathListSeparator)+os.Getenv("PATH"))
	cmd.Stdout, cmd.Stderr = said, said
	runErr := cmd.Run()
	text, err := os.ReadFile(said.Name())
	rig.Must(t, err)
	if runErr != nil || !strings.Contains(string(text), "1 acked\n") ||
		!strings.Contains(string(text), "credentials reloaded") || strings.Contains(string(text), "WARN") {
		t.Errorf("%v:\n%s", runErr, text)
	}
	events, err := os.ReadFile(filepath.Join(dir, "events.jsonl"))
	rig.Must(t, err)
	if got := string(events); !strings.HasSuffix(got, `"tag":"shop","item":"tea","user":"web"}`+"\n") ||
		strings.Count(got, "\n") != 1 {
		t.Errorf("events.jsonl has %q", got)
	}
	for _, secret := range []string{"shared.key", "web.password"} {
		b, err := os.ReadFile(filepath.Join(dir, secret))
		rig.Must(t, err)
		if strings.Contains(string(text), strings.TrimSpace(string(b))) {
			t.Errorf("%s is shown:\n%s", secret, text)
		}
	}
}

func mustAbs(t testing.TB, path string) string {
	t.Helper()
	abs, err := filepath.Abs(path)
	rig.Must(t, err)
	return abs
}
