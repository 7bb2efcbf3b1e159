// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/spillwaylog/spillway/test/internal/rig"
)

// buildEnds returns the binary of examples/ends, a module of its own outside of the workspace: one
// that was built before, of released modules, or one of this checkout.
func buildEnds(t *testing.T) string {
	t.Helper()
	if path := os.Getenv("SPILLWAY_ENDS"); path != "" {
		return path
	}
	path := filepath.Join(t.TempDir(), "ends")
	if runtime.GOOS == "windows" {
		path += ".exe"
	}
	cmd := exec.Command("go", "build", "-o", path, ".")
	cmd.Dir = filepath.Join("..", "..", "examples", "ends")
	cmd.Env = append(os.Environ(), "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}

// A postServer takes posts as a server would that knows their keys. The first try of every third
// key fails, with 503 and 429 by turns; lines with "bad" are refused.
type postServer struct {
	mu      sync.Mutex
	tried   map[string]bool
	lines   []string
	refused int
	busy    int
}

func (s *postServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	s.mu.Lock()
	defer s.mu.Unlock()
	key := r.Header.Get("Idempotency-Key")
	taken, again := s.tried[key]
	switch {
	case err != nil || taken:
	case bytes.Contains(body, []byte("bad")):
		s.refused++
		w.WriteHeader(http.StatusBadRequest)
	case !again && len(s.tried)%3 == 0:
		s.tried[key] = false
		s.busy++
		w.WriteHeader([]int{http.StatusServiceUnavailable, http.StatusTooManyRequests}[s.busy%2])
	default:
		s.tried[key] = true
		s.lines = append(s.lines, strings.Split(strings.TrimSuffix(string(body), "\n"), "\n")...)
	}
}

// TestEnds: the example of an input and an output of another module takes each line once, in order,
// though the server fails now and then and the process is killed.
func TestEnds(t *testing.T) {
	t.Parallel()
	binary := buildEnds(t)
	server := &postServer{tried: map[string]bool{}}
	h := httptest.NewServer(server)
	t.Cleanup(h.Close)
	dir := t.TempDir()
	source := filepath.Join(dir, "source")
	n := 0
	write := func(lines int) {
		var b bytes.Buffer
		for range lines {
			fmt.Fprintf(&b, "{\"n\":%d}\n", n)
			n++
		}
		f, err := os.OpenFile(source, os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o600)
		rig.Must(t, err)
		_, err = f.Write(b.Bytes())
		rig.Must(t, err)
		rig.Must(t, f.Close())
	}
	rig.Must(t, os.WriteFile(source, []byte("{\"bad\":1}\nnot JSON\n"), 0o600))
	for round := range 5 {
		cmd := exec.Command(binary, "tail:"+filepath.ToSlash(source)+"?tag=t", h.URL+"/logs?timeout=5s",
			filepath.Join(dir, "data"))
		var log logBuffer
		cmd.Stdout, cmd.Stderr = &log, &log
		rig.Must(t, cmd.Start())
		t.Cleanup(func() { _ = cmd.Process.Kill() })
		if round == 0 {
			rig.Eventually(t, "the bad line is refused", func() bool {
				server.mu.Lock()
				defer server.mu.Unlock()
				return server.refused == 1
			})
			write(2300)
		}
		write(200)
		rig.Eventually(t, "all lines are posted", func() bool {
			server.mu.Lock()
			defer server.mu.Unlock()
			return len(server.lines) >= n
		})
		write(100) // taken or not
		rig.Must(t, cmd.Process.Kill())
		_ = cmd.Wait() // killed
		if t.Failed() {
			t.Log(log.String())
		}
	}
	server.mu.Lock()
	defer server.mu.Unlock()
	for i, line := range server.lines {
		if line != fmt.Sprintf(`{"n":%d}`, i) {
			t.Fatalf("line %d is %s", i, line)
		}
	}
}

// logBuffer is what a process wrote.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// TestEndsAreShort: what another module needs for an end of its own is less than 60 lines, without
// comments and imports.
func TestEndsAreShort(t *testing.T) {
	for _, name := range []string{"tail.go", "post.go"} {
		b, err := os.ReadFile(filepath.Join("..", "..", "examples", "ends", name))
		rig.Must(t, err)
		before, rest, _ := strings.Cut(string(b), "import (\n")
		_, after, ok := strings.Cut(rest, "\n)\n")
		if !ok {
			t.Fatalf("%s imports nothing", name)
		}
		lines := 0
		for line := range strings.Lines(before + after) {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "//") {
				lines++
			}
		}
		if lines >= 60 {
			t.Errorf("%s has %d lines", name, lines)
		}
	}
}
