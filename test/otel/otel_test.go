// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/plog"
)

var update = flag.Bool("update", false, "write the table of docs/conformance.md again")

const (
	page       = "../../docs/conformance.md"
	tableBegin = "<!-- otel: begin -->"
	tableEnd   = "<!-- otel: end -->"
)

// TestSuite runs the conformance suite against the receiver, and wants it to find what is recorded
// in docs/conformance.md.
func TestSuite(t *testing.T) {
	dir := t.TempDir()
	out, report := filepath.Join(dir, "events.jsonl"), filepath.Join(dir, "report.json")
	addr := freePort(t)
	keepUp(t, filepath.Join(dir, "otel"), "-listen", addr, "-out", out)

	suite := exec.Command("go", "test", "./conformance", "-count=1", "-timeout=10m", "-run=TestConformance",
		"-addr="+addr, "-out="+out, "-report="+report, "-wait=10s")
	suite.Dir = ".." // module test, which is part of the workspace
	suite.Env = append(os.Environ(), "GOWORK=")
	text, err := suite.CombinedOutput()
	if err == nil {
		t.Error("the suite found nothing")
	}
	b, err := os.ReadFile(report)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	found := tableOf(t, b)
	all, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(all), tableBegin+"\n")
	recorded, after, ok2 := strings.Cut(rest, tableEnd)
	if !ok || !ok2 {
		t.Fatalf("%s lacks %s or %s", page, tableBegin, tableEnd)
	}
	switch {
	case found == recorded:
	case *update:
		if err := os.WriteFile(page, []byte(before+tableBegin+"\n"+found+tableEnd+after), 0o600); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("the suite found something else than what is recorded in %s; -update records it. It found\n%s\n%s",
			page, found, text)
	}
}

// result is a part of what the suite reports.
type result struct {
	Rule     int    `json:"rule"`
	Words    string `json:"words"`
	State    string `json:"state"`
	Note     string `json:"note"`
	Cases    int    `json:"cases"`
	Findings []struct {
		Case  string `json:"case"`
		State string `json:"state"`
	} `json:"findings"`
}

// tableOf makes a table of a report. Of the cases that fail it names those that do in one write;
// most are played byte by byte too.
func tableOf(t *testing.T, report []byte) string {
	t.Helper()
	var results []result
	if err := json.Unmarshal(report, &results); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("| rule |  | result | what fails |\n| --- | --- | --- | --- |\n")
	failed := 0
	for _, r := range results {
		var cases []string
		for _, f := range r.Findings {
			name := strings.TrimSuffix(f.Case, ", byte by byte")
			if f.State == "fail" && !slices.Contains(cases, name) {
				cases = append(cases, name)
			}
		}
		if r.State == "fail" {
			failed++
		}
		fmt.Fprintf(&b, "| %d | %s | %s | %s |\n", r.Rule, r.Words, r.State, strings.Join(cases, "; "))
	}
	if failed == 0 || len(results) < 30 {
		t.Errorf("%d rules, of which %d fail", len(results), failed)
	}
	return b.String()
}

// keepUp builds this program and runs it until the test ends, again whenever it dies: some of the
// suite's messages claim more memory than it may have.
func keepUp(t *testing.T, path string, args ...string) {
	t.Helper()
	if text, err := exec.Command("go", "build", "-o", path, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	var mu sync.Mutex
	var now *exec.Cmd
	over := false
	ended := make(chan struct{})
	start := func() *exec.Cmd {
		mu.Lock()
		defer mu.Unlock()
		if over {
			return nil
		}
		now = exec.Command(path, args...)
		if err := now.Start(); err != nil {
			t.Errorf("start: %v", err)
			return nil
		}
		return now
	}
	go func() {
		defer close(ended)
		for cmd := start(); cmd != nil; cmd = start() {
			_ = cmd.Wait() // it dies, or is killed in the end
		}
	}()
	t.Cleanup(func() {
		mu.Lock()
		over = true
		_ = now.Process.Kill() // it may have died
		mu.Unlock()
		<-ended
	})
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.After(4 * time.Minute); ; {
		if c, err := net.Dial("tcp", args[1]); err == nil {
			c.Close()
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("the receiver does not listen")
		}
	}
}

// freePort is an address on which nobody listens, below the ports that the kernel gives to others.
func freePort(t *testing.T) string {
	t.Helper()
	for range 1000 {
		address := fmt.Sprintf("127.0.0.1:%d", 20000+rand.IntN(10000))
		if l, err := net.Listen("tcp", address); err == nil {
			l.Close()
			return address
		}
	}
	t.Fatal("no free port between 20000 and 29999")
	return ""
}

// TestLine wants lines as the suite reads them.
func TestLine(t *testing.T) {
	r := plog.NewLogRecord()
	r.SetTimestamp(1441588984123456789)
	r.Attributes().PutStr(tagAttribute, "t")
	if err := r.Attributes().PutEmpty("a").FromRaw([]any{1, "x", nil}); err != nil {
		t.Fatal(err)
	}
	r.Body().SetStr("b")
	got := appendLine(nil, r)
	want := `{"time":"2015-09-07T01:23:04.123456789Z","tag":"t","a":[1,"x",null],"log":"b"}`
	if !bytes.Equal(got, []byte(want)) {
		t.Errorf("%s, want %s", got, want)
	}
}
