// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// syslogMessage is one of 200 bytes, its newline counted.
var syslogMessage = func() string {
	const head = "<134>Nov 24 14:05:06 web1 nginx[812]: "
	return head + strings.Repeat("GET /api/v1/orders/12345/items 200 ", 5)[:199-len(head)] + "\n"
}()

// An inputServer is a process that reads an input.
type inputServer struct {
	cmd  *exec.Cmd
	said *bytes.Buffer
	done chan error
}

// startInput starts a process, and waits until it takes connections at, or has made, an address.
func startInput(network, address string, command ...string) (*inputServer, error) {
	s := &inputServer{cmd: exec.Command(command[0], command[1:]...), said: &bytes.Buffer{}, done: make(chan error, 1)}
	s.cmd.Stderr = s.said
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	go func() { s.done <- s.cmd.Wait() }()
	for {
		select {
		case err := <-s.done:
			return nil, fmt.Errorf("%s ended before it listened: %w\n%s", command[0], err, s.said)
		case <-time.After(20 * time.Millisecond):
		}
		if network == "udp" { // nothing answers there
			<-time.After(time.Second)
			return s, nil
		}
		if c, err := net.Dial(network, address); err == nil {
			return s, c.Close()
		}
	}
}

// stop ends the process, and returns the CPU time it took.
func (s *inputServer) stop() (time.Duration, error) {
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return 0, err
	}
	if err := <-s.done; err != nil {
		return 0, fmt.Errorf("%w\n%s", err, s.said)
	}
	return s.cmd.ProcessState.UserTime() + s.cmd.ProcessState.SystemTime(), nil
}

// counted is a number of the account that a collector wrote at its end.
func (s *inputServer) counted(name string) int {
	m := regexp.MustCompile(`"` + name + `":(\d+)`).FindSubmatch(s.said.Bytes())
	if m == nil {
		return -1
	}
	n, _ := strconv.Atoi(string(m[1]))
	return n
}

func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// collectorOf starts a collector with one input, whose events are in the synced journal alone.
func (b *bench) collectorOf(network, address, listen string) (*inputServer, error) {
	dir, err := b.fresh()
	if err != nil {
		return nil, err
	}
	return startInput(network, address, b.spillway, "serve", "--listen", listen, "--to", "discard:", "--data",
		filepath.Join(dir, "data"))
}

// rsyslogd starts Debian's rsyslogd with imtcp and omfile, as shipped but for those.
func (b *bench) rsyslogd(address string) (s *inputServer, out string, err error) {
	dir, err := b.fresh()
	if err != nil {
		return nil, "", err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, "", err
	}
	path, err := exec.LookPath("rsyslogd")
	if err != nil {
		path = "/usr/sbin/rsyslogd"
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, "", err
	}
	out = filepath.Join(dir, "out.log")
	config := filepath.Join(dir, "rsyslog.conf")
	text := fmt.Sprintf("global(workDirectory=%q)\nmodule(load=\"imtcp\")\ninput(type=\"imtcp\" address=%q port=%q)\naction(type=\"omfile\" file=%q)\n", dir, host, port, out)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return nil, "", err
	}
	s, err = startInput("tcp", address, path, "-n", "-f", config, "-i", filepath.Join(dir, "pid"))
	return s, out, err
}

// pour writes a text again and again on a number of connections, and returns when the server has
// read all and closed them.
func pour(network, address, text string, times, connections int) error {
	var all sync.WaitGroup
	errs := make([]error, connections)
	for i := range connections {
		all.Go(func() {
			errs[i] = func() error {
				c, err := net.Dial(network, address)
				if err != nil {
					return err
				}
				defer c.Close()
				for range times / connections {
					if _, err := io.WriteString(c, text); err != nil {
						return err
					}
				}
				if err := c.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
					return err
				}
				_, err = io.Copy(io.Discard, c)
				return err
			}()
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

const linesAtOnce = 320 // of a write

// syslog prints the CPU time of a million messages of 200 bytes over TCP, beside Debian's rsyslogd.
func (b *bench) syslog() error {
	names := []string{"rsyslogd, imtcp to omfile", "spillway, synced journal"}
	cpu, rate := make([][]float64, 2), make([][]float64, 2)
	block := strings.Repeat(syslogMessage, linesAtOnce)
	events := b.events / (2 * linesAtOnce) * 2 * linesAtOnce
	for range b.rounds {
		for i := range names {
			address, err := freeAddress()
			if err != nil {
				return err
			}
			var s *inputServer
			out := ""
			if i == 0 {
				s, out, err = b.rsyslogd(address)
			} else {
				s, err = b.collectorOf("tcp", address, "syslog+tcp://"+address)
			}
			if err != nil {
				return err
			}
			began := time.Now()
			if err := pour("tcp", address, block, events/linesAtOnce, 2); err != nil {
				return err
			}
			took := time.Since(began)
			if out != "" { // it reads faster than it writes
				if took, err = settled(out, began); err != nil {
					return err
				}
			}
			used, err := s.stop()
			if err != nil {
				return err
			}
			if n := s.counted("stored"); out == "" && n != events {
				return fmt.Errorf("%d of %d are stored", n, events)
			}
			if out != "" {
				if text, err := os.ReadFile(out); err != nil || bytes.Count(text, []byte("\n")) != events {
					return fmt.Errorf("%d of %d are in the file: %w", bytes.Count(text, []byte("\n")), events, err)
				}
				if err := os.Remove(out); err != nil {
					return err
				}
			}
			cpu[i] = append(cpu[i], used.Seconds()/float64(events)*1e6)
			rate[i] = append(rate[i], float64(events)/took.Seconds()/1e6)
		}
	}
	fmt.Printf("\nsyslog over TCP, %d bytes a message, 2 connections\n%-40s %12s %10s %10s\n", len(syslogMessage), "",
		"CPU s/M", "ratio", "M events/s")
	for i, name := range names {
		fmt.Printf("%-40s %12.3f %10.2f %10.2f\n", name, median(cpu[i]), ratio(cpu[i], cpu[0]), median(rate[i]))
	}
	return nil
}

// settled waits until a file has not grown for a second, and returns when it last grew.
func settled(name string, began time.Time) (time.Duration, error) {
	size, grew := int64(-1), time.Now()
	for time.Since(grew) < time.Second {
		<-time.After(10 * time.Millisecond)
		info, err := os.Stat(name)
		if err != nil {
			return 0, err
		}
		if info.Size() != size {
			size, grew = info.Size(), time.Now()
		}
	}
	return grew.Sub(began), nil
}

// udp prints what is lost of datagrams of 200 bytes, 200,000 a second from two sockets.
func (b *bench) udp() error {
	const perSecond, sockets = 200_000, 2
	events := b.events / (4 * sockets) * sockets
	var cpu, lost, pace []float64
	for range b.rounds {
		address, err := freeAddress()
		if err != nil {
			return err
		}
		s, err := b.collectorOf("udp", address, "syslog+udp://"+address)
		if err != nil {
			return err
		}
		began := time.Now()
		var all sync.WaitGroup
		errs := make([]error, sockets)
		for i := range sockets {
			all.Go(func() { errs[i] = datagrams(address, events/sockets, perSecond/sockets) })
		}
		all.Wait()
		if err := errors.Join(errs...); err != nil {
			return err
		}
		took := time.Since(began)
		used, err := s.stop() // which takes what lies in the socket
		if err != nil {
			return err
		}
		cpu = append(cpu, used.Seconds()/float64(events)*1e6)
		lost = append(lost, float64(events-s.counted("stored")))
		pace = append(pace, float64(events)/took.Seconds())
	}
	fmt.Printf("\nsyslog over UDP, %d bytes a message, %d of them\n%-40s %12s %10s %10s\n", len(syslogMessage), events,
		"", "CPU s/M", "lost", "a second")
	fmt.Printf("%-40s %12.3f %10.0f %10.0f\n", "spillway, synced journal", median(cpu), median(lost), median(pace))
	return nil
}

// datagrams sends so many at a pace, each millisecond what is due.
func datagrams(address string, events, perSecond int) error {
	c, err := net.Dial("udp", address)
	if err != nil {
		return err
	}
	defer c.Close()
	began, message := time.Now(), []byte(syslogMessage)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for sent := 0; sent < events; <-tick.C {
		for due := min(events, int(time.Since(began).Seconds()*float64(perSecond))); sent < due; sent++ {
			if _, err := c.Write(message); err != nil {
				return err
			}
		}
	}
	return nil
}

// lines prints how many megabytes of lines on a unix socket a core takes.
func (b *bench) lines() error {
	line := map[string]string{
		"text": "GET /api/v1/orders/184467 200 " + strings.Repeat("x", 109) + "\n",
		"json": `{"time":"2026-11-21T02:03:04.123456Z","level":"info","msg":"order placed","id":184467,"path":"/api/v1/orders/184467","took":0.25,"ok":1}` + "\n",
	}
	fmt.Printf("\nlines of some 140 bytes on a unix socket, 2 connections\n%-40s %12s %12s %10s\n", "", "CPU s/M",
		"MB/CPU s", "MB/s")
	for _, parse := range []string{"text", "json"} {
		var cpu, core, rate []float64
		block := strings.Repeat(line[parse], linesAtOnce)
		events := b.events / (2 * linesAtOnce) * 2 * linesAtOnce
		for range b.rounds {
			socket := filepath.Join(os.TempDir(), fmt.Sprintf("bench-%d.sock", os.Getpid()))
			s, err := b.collectorOf("unix", socket, "lines+unix://"+socket+"?parse="+parse)
			if err != nil {
				return err
			}
			began := time.Now()
			if err := pour("unix", socket, block, events/linesAtOnce, 2); err != nil {
				return err
			}
			took := time.Since(began)
			used, err := s.stop()
			if err != nil {
				return err
			}
			if n := s.counted("stored"); n != events {
				return fmt.Errorf("%d of %d are stored", n, events)
			}
			bytes := float64(events*len(line[parse])) / 1e6
			cpu = append(cpu, used.Seconds()/float64(events)*1e6)
			core = append(core, bytes/used.Seconds())
			rate = append(rate, bytes/took.Seconds())
		}
		fmt.Printf("%-40s %12.3f %12.0f %10.0f\n", "spillway, synced journal, "+parse, median(cpu), median(core),
			median(rate))
	}
	return nil
}
