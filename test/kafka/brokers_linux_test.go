// SPDX-License-Identifier: Apache-2.0

package kafka

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/spillwaylog/spillway/internal/needs"
	"github.com/spillwaylog/spillway/test/clients"
	"github.com/spillwaylog/spillway/test/internal/rig"
)

// A broker is a process of Apache Kafka, which is a controller as well.
type broker struct {
	t      testing.TB
	home   *clients.KafkaHome
	addr   string
	config string
	cmd    *exec.Cmd
	log    *rig.LogBook
	ended  chan struct{}
}

// brokers are a cluster.
type brokers []*broker

// startBrokers starts a cluster of real brokers, and waits until all serve. Lines of settings may
// say more.
func startBrokers(t testing.TB, n int, settings ...string) brokers {
	t.Helper()
	home, err := clients.Kafka()
	if err != nil {
		needs.Have(t, !errors.Is(err, clients.ErrMissing), "%v", err)
		t.Fatal(err)
	}
	_, err = exec.LookPath("kcat")
	needs.Have(t, err == nil, "kcat is missing: apt-get install kcat")
	bootstrap, err := os.ReadFile(home.Bootstrap)
	rig.Must(t, err)
	var voters []string
	controllers := make([]string, n)
	cluster := make(brokers, n)
	for i := range n {
		controllers[i] = fmt.Sprintf("127.0.0.1:%d", needs.Port("127.0.0.1"))
		voters = append(voters, fmt.Sprintf("%d@%s", i+1, controllers[i]))
	}
	for i := range n {
		dir := t.TempDir()
		b := &broker{
			t: t, home: home, addr: fmt.Sprintf("127.0.0.1:%d", needs.Port("127.0.0.1")),
			config: filepath.Join(dir, "server.properties"),
		}
		logs := filepath.Join(dir, "logs")
		rig.Must(t, os.Mkdir(logs, 0o700))
		rig.Must(t, os.WriteFile(filepath.Join(logs, "bootstrap.checkpoint"), bootstrap, 0o600))
		rig.Must(t, os.WriteFile(filepath.Join(logs, "meta.properties"),
			fmt.Appendf(nil, "version=1\ncluster.id=%s\nnode.id=%d\ndirectory.id=AAAAAAAAAAAAAAAAAAAA%dg\n",
				clients.KafkaCluster, i+1, i+1), 0o600))
		lines := append([]string{
			"process.roles=broker,controller", fmt.Sprintf("node.id=%d", i+1),
			"controller.quorum.voters=" + strings.Join(voters, ","),
			"controller.listener.names=CONTROLLER",
			"listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
			fmt.Sprintf("listeners=PLAINTEXT://%s,CONTROLLER://%s", b.addr, controllers[i]),
			"advertised.listeners=PLAINTEXT://" + b.addr,
			"log.dirs=" + logs, "num.partitions=4", fmt.Sprintf("default.replication.factor=%d", n),
			fmt.Sprintf("min.insync.replicas=%d", max(1, n-1)),
			fmt.Sprintf("transaction.state.log.replication.factor=%d", n),
			fmt.Sprintf("transaction.state.log.min.isr=%d", max(1, n-1)),
			"transaction.state.log.num.partitions=2", "offsets.topic.num.partitions=1",
			fmt.Sprintf("offsets.topic.replication.factor=%d", n),
			"group.initial.rebalance.delay.ms=0", "broker.session.timeout.ms=4000", "broker.heartbeat.interval.ms=1000",
			"num.network.threads=2",
			"num.io.threads=4", "log.cleaner.dedupe.buffer.size=4194304", "controlled.shutdown.enable=false",
		}, settings...)
		rig.Must(t, os.WriteFile(b.config, []byte(strings.Join(lines, "\n")), 0o600))
		cluster[i] = b
		b.start()
	}
	for _, b := range cluster {
		b.serves()
	}
	return cluster
}

// start starts the process, which dies with the test.
func (b *broker) start() {
	b.t.Helper()
	dir := filepath.Dir(b.config)
	// A process that is killed leaves its temporary files.
	args := slices.Concat([]string{"-Djava.io.tmpdir=" + dir}, b.home.Command[1:], []string{b.config})
	cmd := exec.Command(b.home.Command[0], args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Dir = dir
	stderr, err := cmd.StderrPipe()
	rig.Must(b.t, err)
	log, started, ended := rig.NewLogBook(), make(chan error), make(chan struct{})
	go func() {
		runtime.LockOSThread() // Pdeathsig is about the thread
		defer close(ended)
		err := cmd.Start()
		started <- err
		if err == nil {
			log.Follow(stderr)
			_ = cmd.Wait() // killed
		}
	}()
	rig.Must(b.t, <-started)
	b.cmd, b.log, b.ended = cmd, log, ended
	b.t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		<-ended
		if b.t.Failed() {
			b.t.Logf("broker %s said:\n%s", b.addr, rig.Tail(log.String(), 2000))
		}
	})
}

// kill ends the process as kill -9 does.
func (b *broker) kill() {
	_ = syscall.Kill(-b.cmd.Process.Pid, syscall.SIGKILL)
	<-b.ended
}

// serves waits until the broker answers.
func (b *broker) serves() {
	b.t.Helper()
	rig.Eventually(b.t, "the broker at "+b.addr+" serves", func() bool {
		select {
		case <-b.ended:
			b.t.Fatalf("the broker ended:\n%s", rig.Tail(b.log.String(), 2000))
		default:
		}
		c, err := net.Dial("tcp", b.addr)
		if err != nil {
			return false
		}
		_ = c.Close()
		return exec.Command("kcat", "-b", b.addr, "-L", "-m", "5").Run() == nil
	})
}

// addrs are the brokers as a URL has them.
func (c brokers) addrs() string {
	var all []string
	for _, b := range c {
		all = append(all, b.addr)
	}
	return strings.Join(all, ",")
}

// patience is the seconds for which kcat waits for what brokers say of a topic: a busy machine
// holds them up for longer than the five that it takes by itself.
const patience = "60"

// consume reads what is committed in a topic, with kcat: values in the order of each partition.
// format is kcat's.
func (c brokers) consume(t testing.TB, topic, format string) []string {
	t.Helper()
	cmd := exec.Command("kcat", "-b", c.addrs(), "-m", patience, "-C", "-t", topic, "-e", "-q", "-o", "beginning",
		"-f", format+`\n`, "-X", "isolation.level=read_committed", "-X", "fetch.wait.max.ms=100", "-X",
		"topic.metadata.refresh.interval.ms=500")
	out, err := cmd.Output()
	if err != nil {
		t.Logf("kcat: %v", err)
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
}

// tool is how java runs another class of Kafka.
func (c brokers) tool(class string, args ...string) []string {
	command := c[0].home.Command[1:]
	return append(append(slices.Clone(command[:len(command)-1]), class), args...)
}
