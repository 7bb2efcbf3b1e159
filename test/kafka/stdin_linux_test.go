// SPDX-License-Identifier: Apache-2.0

package kafka

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spillwaylog/spillway/test/internal/rig"
)

// kafkaStdin runs the command on the README's first screen as it stands there, but for the
// application and the brokers: when it has ended all lines are in the topic, each once.
func kafkaStdin(t *testing.T, cluster brokers) {
	readme, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	rig.Must(t, err)
	_, command, found := strings.Cut(string(readme), "```sh\napp | spillway ")
	command, _, closed := strings.Cut(command, "\n")
	if !found || !closed || !strings.Contains(command, "b1:9092,b2:9092/logs") {
		t.Fatalf("the README has no such command: %q", command)
	}
	const count = 20_000
	command = fmt.Sprintf(`seq 0 %d | sed 's/.*/{"n":&,"msg":"order placed"}/' | "$0" `,
		count-1) + strings.ReplaceAll(command, "b1:9092,b2:9092", cluster.addrs())
	cmd := exec.Command("sh", "-c", command, rig.Checked.Build(t))
	cmd.Dir = t.TempDir()
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", command, err, rig.Tail(string(said), 2000))
	}
	seen := make([]bool, count)
	lines := cluster.consume(t, "logs", "%s")
	for _, line := range lines {
		var r struct {
			Tag, Msg string
			N        int
		}
		if err := json.Unmarshal([]byte(line), &r); err != nil || r.N >= count || seen[r.N] || r.Tag != "lines" ||
			r.Msg != "order placed" {
			t.Fatalf("%s: %v", line, err)
		}
		seen[r.N] = true
	}
	if len(lines) != count {
		t.Errorf("%d lines, want %d", len(lines), count)
	}
}
