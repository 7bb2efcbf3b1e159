// SPDX-License-Identifier: Apache-2.0

package logger

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/spillwaylog/spillway"
	"github.com/spillwaylog/spillway/test/internal/rig"
)

// TestAdaptersKill kills a process that logs through an adapter. What a call had taken stands in
// the file once, in order, when the next process of the name is through.
func TestAdaptersKill(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "adapters")
	if out, err := exec.Command("go", "build", "-o", program,
		"testdata/adapters/main.go").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	r := rig.Random(t)
	for _, adapter := range []string{"logrus", "zap", "zerolog", "logr"} {
		enough := 1 + r.IntN(5000)
		t.Run(adapter, func(t *testing.T) {
			t.Parallel()
			h := rig.NewHome(t)
			path := filepath.Join(t.TempDir(), "log")
			cmd := exec.Command(program, adapter, "file://"+path, h.Shm)
			cmd.Stderr = t.Output()
			out, err := cmd.StdoutPipe()
			rig.Must(t, err)
			rig.Must(t, cmd.Start())
			accepted := 0
			for lines := bufio.NewScanner(out); lines.Scan(); {
				n, err := strconv.Atoi(lines.Text())
				if err != nil {
					break // cut off by the kill
				}
				if accepted = max(accepted, n); n == enough {
					_ = cmd.Process.Kill()
				}
			}
			_ = cmd.Wait() // killed
			if accepted < enough {
				t.Fatalf("the process ended by itself after %d", accepted)
			}

			rig.Closing(t, h.Open("file://"+path, spillway.Options{}))
			file, err := os.Open(path)
			rig.Must(t, err)
			defer file.Close()
			n := 0
			for lines := bufio.NewScanner(file); lines.Scan(); {
				var event struct{ N int }
				rig.Must(t, json.Unmarshal(lines.Bytes(), &event))
				if n++; event.N != n {
					t.Fatalf("line %d has %d", n, event.N)
				}
			}
			// An event may be there whose number was not printed, or only a part of it.
			if n < accepted {
				t.Errorf("%d in the file, %d accepted", n, accepted)
			}
			h.WantEmpty()
		})
	}
}
