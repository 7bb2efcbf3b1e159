// SPDX-License-Identifier: Apache-2.0

package syslog

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/internal/needs"
	"github.com/spillwaylog/spillway/internal/testcert"
	"github.com/spillwaylog/spillway/test/internal/rig"
)

// syslogTexts are messages with their numbers.
func syslogTexts(count int) string {
	var b strings.Builder
	for i := range count {
		fmt.Fprintf(&b, "number %d of 'some' \"words\" [x] ü\n", i)
	}
	return b.String()
}

// syslogNumber finds the number of a message. Behind the header of RFC 5424 rsyslog writes two
// spaces, of which the second is the message's.
var syslogNumber = regexp.MustCompile(`^ ?(?:number |seq: 0*)(\d+)[ ,]`)

// wantSyslog wants each message of a sender once, with what the sender says of it.
func wantSyslog(t *testing.T, lines []rig.Line, count int, began time.Time, want map[string]string) {
	t.Helper()
	seen := make([]bool, count)
	for _, l := range lines {
		text, _ := l.Record["message"].(string)
		m := syslogNumber.FindStringSubmatch(text)
		n := -1
		if m != nil {
			n, _ = strconv.Atoi(m[1])
		}
		if n < 0 || n >= count || seen[n] {
			t.Fatalf("%d messages; this is none of them, or there twice: %v", count, l.Record)
		}
		seen[n] = true
		for key, value := range want {
			if got := fmt.Sprint(l.Record[key]); value != "*" && got != value || got == "<nil>" {
				t.Fatalf("%s is %s, want %s: %v", key, got, value, l.Record)
			}
		}
		if l.Time.Before(began.Truncate(time.Second)) || l.Time.After(time.Now()) {
			t.Fatalf("the time is %v, and the test began at %v", l.Time, began)
		}
		if l.Record["truncated"] != nil {
			t.Fatalf("cut: %v", l.Record)
		}
	}
	if len(lines) != count {
		t.Errorf("%d messages, want %d", len(lines), count)
	}
}

// TestClientsSyslog has real senders of syslog send to a collector: each message is there once,
// with its time, its priority and its program.
func TestClientsSyslog(t *testing.T) {
	t.Parallel()
	const (
		many   = 3000
		packet = 200 // so many find room in any receive buffer
	)
	logger := func(args ...string) func(*testing.T, string, int) {
		return func(t *testing.T, to string, count int) {
			command := []string{"logger", "--priority", "local3.warning", "--tag", "shop", "--id=77"}
			if host, port, err := net.SplitHostPort(to); err == nil {
				command = append(command, "--server", host, "--port", port)
			} else {
				command = append(command, "--socket", to)
			}
			sendSyslog(t, "bsdutils", syslogTexts(count), append(command, args...)...)
		}
	}
	shop := map[string]string{"facility": "local3", "severity": "warning", "app": "shop", "pid": "77"}
	remote := map[string]string{"facility": "local3", "severity": "warning", "app": "shop", "pid": "77", "host": "*"}
	loggen := func(args ...string) func(*testing.T, string, int) {
		return func(t *testing.T, to string, count int) {
			// Unless it is permanent it ends after ten seconds, whatever it has sent.
			command := append([]string{
				"loggen", "--quiet", "--permanent", "--rate", "1000000", "--number", strconv.Itoa(count),
			}, args...)
			command = append(command, strings.Split(to, ":")...)
			sendSyslog(t, "syslog-ng-core", "", command...)
		}
	}
	prg := map[string]string{
		"facility": "auth", "severity": "info", "app": "prg00000", "pid": "1234",
		"host": "localhost",
	}
	python := func(address, kind string) func(*testing.T, string, int) {
		return func(t *testing.T, to string, count int) {
			host, port, _ := strings.Cut(to, ":")
			program := fmt.Sprintf(`
import logging, logging.handlers, socket, sys
HOST, PORT = %q, %s
h = logging.handlers.SysLogHandler(%s, facility="local3", socktype=socket.%s)
h.ident = "shop[77]: "
log = logging.getLogger(); log.addHandler(h)
for line in sys.stdin: log.warning(line.rstrip())
`, host, cmp.Or(port, "0"), address, kind)
			sendSyslog(t, "python3", syslogTexts(count), "python3", "-c", program)
		}
	}
	for _, tt := range []struct {
		name, url string
		count     int
		send      func(t *testing.T, to string, count int)
		want      map[string]string
	}{
		{"logger udp 3164", "udp", packet, logger("--udp", "--rfc3164"), remote},
		{"logger udp 5424", "udp", packet, logger("--udp", "--rfc5424"), remote},
		{"logger tcp 3164", "tcp", many, logger("--tcp", "--rfc3164"), remote},
		{"logger tcp 5424", "tcp", many, logger("--tcp", "--rfc5424"), remote},
		{"logger tcp 3164 counted", "tcp", many, logger("--tcp", "--rfc3164", "--octet-count"), remote},
		{"logger tcp 5424 counted", "tcp", many, logger("--tcp", "--rfc5424", "--octet-count"), remote},
		{"logger dgram", "dgram", many, logger("--udp"), shop},
		{"logger dgram 5424", "dgram", many, logger("--udp", "--rfc5424"), remote},
		{"logger stream", "stream", many, logger("--tcp"), shop},
		{"logger stream 3164", "stream", many, logger("--tcp", "--rfc3164"), remote},
		{"logger stream 5424", "stream", many, logger("--tcp", "--rfc5424", "--octet-count"), remote},
		{"loggen udp", "udp", packet, loggen("--inet", "--dgram"), prg},
		{
			"loggen udp 5424 counted", "udp", packet, loggen("--inet", "--dgram", "--syslog-proto"),
			map[string]string{"app": "prg00000", "severity": "info"},
		},
		{"loggen tcp", "tcp", many, loggen("--inet", "--stream"), prg},
		{"loggen tcp 5424", "tcp", many, loggen("--inet", "--stream", "--syslog-proto", "--no-framing",
			`--sdata=[test@1 name="a \"value\""]`), map[string]string{
			"app": "prg00000", "pid": "1234", "host": "localhost", "data": `map[test@1:map[name:a "value"]]`,
		}},
		{"loggen tcp 5424 counted", "tcp", many, loggen("--inet", "--stream", "--syslog-proto"), prg},
		{"loggen tls 5424 counted", "tls", many, loggen("--use-ssl", "--syslog-proto"), prg},
		{"loggen dgram", "dgram", many, loggen("--unix", "--dgram"), prg},
		{"loggen stream", "stream", many, loggen("--unix", "--stream"), prg},
		{"python udp", "udp", packet, python("(HOST, PORT)", "SOCK_DGRAM"), shop},
		{"python tcp", "tcp", many, python("(HOST, PORT)", "SOCK_STREAM"), shop},
		{"python dgram", "dgram", many, python("HOST", "SOCK_DGRAM"), shop},
		{"python stream", "stream", many, python("HOST", "SOCK_STREAM"), shop},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s, out := rig.NewSetup(t)
			to := rig.SocketPath(t)
			switch tt.url {
			case "dgram", "stream":
				s.Listen = []string{"syslog+unix://" + to + "?type=" + tt.url}
			default:
				to = needs.Address()
				s.Listen = []string{"syslog+" + tt.url + "://" + to}
				if tt.url == "tls" {
					ca := testcert.New(t)
					s.Listen[0] += "?cert=" + ca.Server.Cert + "&key=" + ca.Server.Key
				}
			}
			c := rig.StartCollector(t, s)
			began := time.Now()
			tt.send(t, to, tt.count)
			rig.WaitLines(t, out, tt.count)
			c.Stop()
			wantSyslog(t, rig.ReadLines(t, out), tt.count, began, tt.want)
		})
	}
	t.Run("rsyslog", func(t *testing.T) { rsyslogForwards(t, many) })
	t.Run("loggen udp unpaced", loggenFlood)
}

// loggenSlow is what loggen says of a handshake that takes more than five seconds. It waits all the
// same, and sends all.
var loggenSlow = regexp.MustCompile(`error \[\w+\.c:start:\d+\] timeout occurred while waiting for connections`)

// sendSyslog runs a sender to its end.
func sendSyslog(t *testing.T, install, in string, command ...string) {
	t.Helper()
	_, err := exec.LookPath(command[0])
	needs.Have(t, err == nil, "%s is missing: apt-get install %s", command[0], install)
	cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
	cmd.Stdin = strings.NewReader(in)
	said, err := cmd.CombinedOutput()
	if err != nil || bytes.Contains(loggenSlow.ReplaceAll(said, nil), []byte("error")) {
		t.Fatalf("%s: %v: %s", command[0], err, said)
	}
}

// rsyslogForwards has Debian's rsyslog forward each message in all its ways.
func rsyslogForwards(t *testing.T, count int) {
	t.Parallel()
	ca := testcert.New(t)
	s, out := rig.NewSetup(t)
	rules := []string{
		fmt.Sprintf(`global(DefaultNetstreamDriverCAFile=%q DefaultNetstreamDriverCertFile=%q DefaultNetstreamDriverKeyFile=%q)`, ca.File, ca.Client.Cert, ca.Client.Key),
	}
	var tags []string
	for _, template := range []string{
		"RSYSLOG_TraditionalForwardFormat", "RSYSLOG_ForwardFormat",
		"RSYSLOG_SyslogProtocol23Format",
	} {
		for _, framing := range []string{"traditional", "octet-counted"} {
			for _, scheme := range []string{"tcp", "tls"} {
				port, tag := needs.Port("127.0.0.1"), fmt.Sprintf("way%d", len(tags))
				url := fmt.Sprintf("syslog+%s://127.0.0.1:%d?tag=%s", scheme, port, tag)
				rule := rig.ForwardTo(port, framing, template)
				if scheme == "tls" {
					url += "&cert=" + ca.Server.Cert + "&key=" + ca.Server.Key + "&client_ca=" + ca.File
					rule = strings.TrimSuffix(rule, ")") +
						` StreamDriver="gtls" StreamDriverMode="1" StreamDriverAuthMode="x509/name" StreamDriverPermittedPeers="localhost")`
				}
				s.Listen, tags, rules = append(s.Listen, url), append(tags, tag), append(rules, rule)
			}
		}
	}
	plugins, err := filepath.Glob("/usr/lib/*/rsyslog/lmnsd_gtls.so")
	needs.Have(t, err == nil && len(plugins) > 0, "rsyslog's TLS is missing: apt-get install rsyslog-gnutls")
	c := rig.StartCollector(t, s)
	socket := rig.StartRsyslog(t, rules...)
	began := time.Now()
	conn, err := net.Dial("unixgram", socket)
	rig.Must(t, err)
	defer conn.Close()
	for text := range strings.Lines(syslogTexts(count)) {
		_, err := io.WriteString(conn, "<156>"+time.Now().Format(time.Stamp)+" shop[77]: "+
			strings.TrimSuffix(text, "\n"))
		rig.Must(t, err)
	}
	rig.WaitLines(t, out, count*len(tags))
	c.Stop()
	host, err := os.Hostname()
	rig.Must(t, err)
	host, _, _ = strings.Cut(host, ".")
	byTag := map[string][]rig.Line{}
	for _, l := range rig.ReadLines(t, out) {
		if name, _ := l.Record["host"].(string); !strings.HasPrefix(name, host) {
			t.Fatalf("the host is %q, and this is %q", name, host)
		}
		byTag[l.Tag] = append(byTag[l.Tag], l)
	}
	for _, tag := range tags {
		wantSyslog(t, byTag[tag], count, began,
			map[string]string{"facility": "local3", "severity": "warning", "app": "shop", "pid": "77"})
	}
}

// loggenFlood has loggen send datagrams as fast as it can: what is not there was dropped by the
// kernel, which is counted as refused.
func loggenFlood(t *testing.T) {
	t.Parallel()
	s, out := rig.NewSetup(t)
	to := needs.Address()
	s.Listen = []string{"syslog+udp://" + to + "?receive_buffer=64KiB"}
	c := rig.StartCollector(t, s)
	conn, err := net.Dial("udp", to)
	rig.Must(t, err)
	defer conn.Close()
	const count = 100_000
	host, port, _ := strings.Cut(to, ":")
	sendSyslog(t, "syslog-ng-core", "", "loggen", "--quiet", "--rate", "100000000", "--number", strconv.Itoa(count),
		"--inet", "--dgram", host, port)
	last := 0
	rig.Eventually(t, "what comes behind the flood is there", func() bool { // by it the kernel tells of the drops
		_, err := fmt.Fprintf(conn, "<13>Nov 24 14:05:06 last: %d", last)
		rig.Must(t, err)
		last++
		text, err := os.ReadFile(filepath.Join(out, "syslog.user.last.jsonl"))
		return err == nil && len(text) > 0
	})
	c.Stop()
	stored := len(rig.ReadLines(t, out))
	refused := int(c.LastAccount()["refused"])
	if stored == 0 || stored+refused > count+last {
		t.Errorf("%d stored and %d dropped of %d", stored, refused, count+last)
	}
	rig.Figure(t, "%d datagrams without a pause: %d stored, %d dropped and counted, %d untold", count+last, stored, refused,
		count+last-stored-refused)
}
