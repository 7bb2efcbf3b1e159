// SPDX-License-Identifier: Apache-2.0

//go:build linux

package test_test

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/spillwaylog/spillway"
	"github.com/spillwaylog/spillway/compat/fluent/fluent"
)

// TestKill kills a process whose events nobody took: the next one of its name delivers them.
func TestKill(t *testing.T) {
	address, shm := nowhere(t), t.TempDir()
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), "COMPAT_CHILD="+address.String(), "SPILLWAY_SHM="+shm)
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	must(t, err)
	must(t, child.Start())
	line, err := bufio.NewReader(out).ReadString('\n') // it has posted
	if err != nil || strings.TrimSpace(line) != "posted" {
		t.Errorf("the child says %q, %v", line, err)
	}
	must(t, child.Process.Signal(syscall.SIGKILL))
	if err := child.Wait(); err == nil {
		t.Error("it was not killed")
	}
	s := listen(t, "tcp", address.String())
	f, err := fluent.NewWith(patient(address), &spillway.Options{Shm: shm})
	must(t, err)
	defer func() { must(t, f.Close()) }()
	for n, e := range s.wait(childPosts) {
		equal(t, e, event{"killed", clock.Truncate(1e9), text("%d", n)})
	}
}

const childPosts = 5000

// runChild is the process that is killed.
func runChild(address string) {
	a, err := net.ResolveTCPAddr("tcp", address)
	if err == nil {
		var f *fluent.Fluent
		f, err = fluent.New(patient(a))
		for n := 0; n < childPosts && err == nil; n++ {
			err = f.PostWithTime("killed", clock, text("%d", n))
		}
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("posted")
	select {}
}
