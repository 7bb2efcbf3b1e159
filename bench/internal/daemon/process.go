// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// processEnv says that a program is to be a daemon, and of which behaviour.
const processEnv = "SPILLWAY_BENCH_DAEMON"

// Main is called first in main by programs that start a [Process] of themselves: in that process it
// serves, and does not return.
func Main() {
	behaviour := os.Getenv(processEnv)
	if behaviour == "" {
		return
	}
	var o Options
	if _, err := fmt.Sscan(behaviour, &o.Behaviour); err != nil {
		panic(err)
	}
	d, err := Start(o)
	if err != nil {
		panic(err)
	}
	fmt.Println(d.Addr())
	_, _ = io.Copy(io.Discard, os.Stdin) // until the parent ends
	os.Exit(0)
}

// A Process is a daemon in a process of its own.
type Process struct {
	Addr  string
	cmd   *exec.Cmd
	stdin io.Closer
}

// StartProcess starts this program again as a daemon.
func StartProcess(behaviour Behaviour) (*Process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &Process{cmd: exec.Command(self)}
	p.cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d", processEnv, behaviour))
	p.cmd.Stderr = os.Stderr
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		return nil, fmt.Errorf("the daemon ended: %w", err)
	}
	p.Addr = strings.TrimSpace(line)
	return p, nil
}

// Close ends the process.
func (p *Process) Close() error {
	p.stdin.Close()
	return p.cmd.Wait()
}
