// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/internal/needs"
	"github.com/spillwaylog/spillway/test/internal/rig"
)

// TestStdinPipe: what an application wrote before it ended is in the file when serve has exited,
// with status 0.
func TestStdinPipe(t *testing.T) {
	t.Parallel()
	s, out := rig.NewSetup(t)
	var in, want bytes.Buffer
	for i := range 50_000 {
		fmt.Fprintf(&in, "{\"n\":%d,\"pad\":%q}\n", i, strings.Repeat("p", i%200))
	}
	want.Write(in.Bytes())
	cmd := exec.Command(rig.Checked.Build(t), "serve", "--listen", "stdin:?parse=json&tag=app", "--to",
		s.To[0]+"?time_key=-&tag_key=-", "--data", s.Data)
	cmd.Stdin = &in
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, rig.Tail(string(text), 4000))
	}
	got, err := os.ReadFile(filepath.Join(out, "app.jsonl"))
	if err != nil || !bytes.Equal(got, want.Bytes()) {
		t.Fatalf("%d bytes, want %d; %v", len(got), want.Len(), err)
	}
}

// TestLinesKill: a sender of lines goes on where its connection broke. Behind kills of the
// collector each line that was read is in the file once and in order; what is missing was in the
// socket of a kill, and is missing in one piece.
func TestLinesKill(t *testing.T) {
	t.Parallel()
	kills := needs.Rounds(t, "SPILLWAY_KILLS", 4, 10)
	dir := t.TempDir()
	sock, out := filepath.Join(dir, "s"), filepath.Join(dir, "out.jsonl")
	s := &rig.Setup{
		Listen: []string{"lines+unix://" + sock}, To: []string{"file://" + out + "?time_key=-&tag_key=-"},
		Data: filepath.Join(dir, "data"),
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))

	n := 0 // lines begun
	for range kills {
		c := rig.StartCollector(t, s)
		conn, err := net.Dial("unix", sock)
		rig.Must(t, err)
		killed := make(chan struct{})
		after := time.Duration(random.IntN(300)) * time.Millisecond
		time.AfterFunc(after, func() {
			c.Kill()
			close(killed)
		})
		for err == nil {
			_, err = fmt.Fprintf(conn, "line %d\n", n)
			n++
		}
		<-killed
		conn.Close()
	}
	c := rig.StartCollector(t, s)
	conn, err := net.Dial("unix", sock)
	rig.Must(t, err)
	final := n
	for range 1000 {
		_, err = fmt.Fprintf(conn, "line %d\n", n)
		rig.Must(t, err)
		n++
	}
	rig.Must(t, conn.Close())
	var text []byte
	rig.Eventually(t, "the last line is in the file", func() bool {
		text, err = os.ReadFile(out)
		return err == nil && bytes.HasSuffix(text, fmt.Appendf(nil, "{\"message\":\"line %d\"}\n", n-1))
	})
	c.Stop()
	gaps, next := 0, 0
	for line := range bytes.Lines(text) {
		var got int
		if _, err := fmt.Sscanf(string(line), `{"message":"line %d"}`, &got); err != nil || got < next {
			t.Fatalf("%q: %v; want line %d or a later one", line, err, next)
		}
		if got > next {
			if gaps++; next >= final {
				t.Fatalf("line %d of the last connection is missing", next)
			}
		}
		next = got + 1
	}
	if gaps > kills || next != n {
		t.Errorf("%d gaps behind %d kills, %d lines of %d", gaps, kills, next, n)
	}
	rig.Figure(t, "%d lines, %d gaps behind %d kills", n, gaps, kills)
}

// TestLinesPage runs the examples of docs/lines.md as they stand there, but for the port: a line of
// each language is in the file.
func TestLinesPage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "lines.md"))
	rig.Must(t, err)
	s, out := rig.NewSetup(t)
	port := fmt.Sprint(needs.Port("127.0.0.1"))
	s.Listen = []string{"lines://127.0.0.1:" + port + "?parse=json&tag=app"}
	c := rig.StartCollector(t, s)
	dir := t.TempDir()
	for _, l := range []struct{ name, language, program, install, file string }{
		{"bash", "a shell", "bash", "bash", "log.sh"},
		{"python", "Python", "python3", "python3", "log.py"},
		{"ruby", "Ruby", "ruby", "ruby", "log.rb"},
		{"js", "Node", "node", "nodejs", "log.js"},
		{"java", "Java", "java", "default-jdk-headless", "Log.java"},
	} {
		t.Run(l.name, func(t *testing.T) {
			_, err := exec.LookPath(l.program)
			needs.Have(t, err == nil, "%s is missing: apt-get install %s", l.program, l.install)
			_, rest, ok := strings.Cut(string(page), "```"+l.name+"\n")
			code, _, closed := strings.Cut(rest, "```\n")
			if !ok || !closed || strings.Count(code, "5170") != 1 {
				t.Fatalf("the page has no example: %q", code)
			}
			code = strings.ReplaceAll(code, "5170", port)
			if l.name == "java" {
				code = "class Log { public static void main(String[] a) throws Exception {\n" + code + "} }\n"
			}
			file := filepath.Join(dir, l.file)
			rig.Must(t, os.WriteFile(file, []byte(code), 0o600))
			if text, err := exec.Command(l.program, file).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, text)
			}
			rig.Eventually(t, "its line is in the file", func() bool {
				text, err := os.ReadFile(filepath.Join(out, "app.jsonl"))
				return err == nil && bytes.Contains(text, []byte(`"level":"info","msg":"from `+l.language+`"}`))
			})
		})
	}
	c.Stop()
}
