// SPDX-License-Identifier: Apache-2.0

package test

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/internal/needs"
)

// pythonClient is the package that the test installs, into a folder of its own that later runs find again.
const pythonClient = "fluent-logger==0.11.1"

// python returns the interpreter of a virtual environment that has the client in it.
func python(t testing.TB) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	must(t, err)
	venv := filepath.Join(cache, "spillway-test", strings.ReplaceAll(pythonClient, "==", "-"))
	interpreter := filepath.Join(venv, "bin", "python")
	has := func() bool { return exec.Command(interpreter, "-c", "from fluent import sender").Run() == nil }
	if has() {
		return interpreter
	}
	base, err := exec.LookPath("python3")
	needs.Have(t, err == nil, "the Python client needs python3: %v", err)
	must(t, os.MkdirAll(filepath.Dir(venv), 0o700))
	for _, args := range [][]string{
		{base, "-m", "venv", "--clear", venv},
		{interpreter, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", pythonClient},
	} {
		out, err := exec.Command(args[0], args[1:]...).CombinedOutput()
		needs.Have(t, err == nil, "%s cannot be installed: %s: %v\n%s", pythonClient, strings.Join(args, " "), err, out)
	}
	needs.Have(t, has(), "%s is installed but cannot be imported", pythonClient)
	return interpreter
}

// TestPythonClient sends events with "pip install fluent-logger".
func TestPythonClient(t *testing.T) {
	interpreter := python(t)
	for _, tt := range []struct {
		name        string
		unix        bool
		nanoseconds bool
		divisor     int // of the number of events
	}{
		{name: "tcp", divisor: 1},
		{name: "nanoseconds", nanoseconds: true, divisor: 1},
		{name: "unix", unix: true, nanoseconds: true, divisor: 10},
	} {
		t.Run(tt.name, func(t *testing.T) {
			count := events(t) / tt.divisor
			s, out := newSetup(t)
			host, port := "", "0"
			if tt.unix {
				path := socketPath(t)
				s.listen = []string{"forward+unix://" + path}
				host = "unix://" + path
			}
			c := startCollector(t, s)
			if !tt.unix {
				var err error
				host, port, err = net.SplitHostPort(c.addr)
				must(t, err)
			}
			nanoseconds := "0"
			if tt.nanoseconds {
				nanoseconds = "1"
			}
			cmd := exec.Command(interpreter, filepath.Join("testdata", "fluent_logger.py"), host, port, fmt.Sprint(count), nanoseconds)
			if text, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
			waitLines(t, out, count)
			c.stop()
			wantEvents(t, readLines(t, out), count, func(n int) line {
				when := time.Unix(1700000000+int64(n/8), 0).UTC()
				if tt.nanoseconds {
					when = when.Add(time.Duration(n%8) * time.Second / 8)
				}
				return line{time: when, tag: "python.label", record: map[string]any{
					"n":    json.Number(fmt.Sprint(n)),
					"text": fmt.Sprintf("zwölf \"%d\"\n", n),
					"half": json.Number(fmt.Sprintf("%d.5", n)),
					"list": []any{nil, true, map[string]any{"deep": json.Number(fmt.Sprint(-n))}},
				}}
			})
		})
	}
}
