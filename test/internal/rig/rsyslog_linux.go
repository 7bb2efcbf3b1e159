// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/spillwaylog/spillway/internal/needs"
)

// StartRsyslog starts Debian's rsyslogd with a socket that programs log to, and rules.
func StartRsyslog(t *testing.T, rules ...string) (socket string) {
	t.Helper()
	path, err := exec.LookPath("rsyslogd")
	if err != nil {
		path = "/usr/sbin/rsyslogd"
		_, err = os.Stat(path)
	}
	needs.Have(t, err == nil, "rsyslogd is missing: apt-get install rsyslog")
	dir := t.TempDir()
	socket = SocketPath(t)
	config := filepath.Join(dir, "rsyslog.conf")
	lines := append([]string{
		fmt.Sprintf(`global(workDirectory=%q maxMessageSize="64k")`, dir),
		`module(load="imuxsock" SysSock.Use="off")`,
		fmt.Sprintf(`input(type="imuxsock" Socket=%q)`, socket),
	}, rules...)
	Must(t, os.WriteFile(config, []byte(strings.Join(lines, "\n")+"\n"), 0o600))
	cmd := exec.Command(path, "-n", "-f", config, "-i", filepath.Join(dir, "pid"))
	log := NewLogBook()
	stderr, err := cmd.StderrPipe()
	Must(t, err)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	Must(t, cmd.Start())
	ended := make(chan struct{})
	go func() {
		log.Follow(stderr)
		_ = cmd.Wait() // killed
		close(ended)
	}()
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		<-ended
		if t.Failed() {
			t.Logf("rsyslogd said:\n%s", Tail(log.String(), 2000))
		}
	})
	Eventually(t, "rsyslogd listens", func() bool {
		_, err := os.Stat(socket)
		return err == nil
	})
	return socket
}

// ForwardTo is a rule of rsyslog. Its queue has room for all that a test sends. A full one waits
// for two seconds and then discards, and a TLS handshake takes as long on a busy machine.
func ForwardTo(port int, framing, template string) string {
	return fmt.Sprintf(`action(type="omfwd" target="127.0.0.1" port="%d" protocol="tcp" TCP_Framing=%q template=%q `+
		`queue.type="LinkedList" queue.size="100000" action.resumeRetryCount="-1" action.resumeInterval="1")`,
		port, framing, template)
}
