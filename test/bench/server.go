// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"
)

// server is a running server process.
type server struct {
	cmd  *exec.Cmd
	addr string
}

// listening finds the address in the line by which a server tells it.
var listening = regexp.MustCompile(`listening.*forward://([^ ?"\n]+)`)

func start(cmd *exec.Cmd) (*server, error) {
	pipe, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	lines := bufio.NewReader(pipe)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			cmd.Process.Kill()
			return nil, fmt.Errorf("%s ended before it listened: %w", cmd.Path, cmd.Wait())
		}
		if m := listening.FindStringSubmatch(line); m != nil {
			go io.Copy(os.Stderr, lines)
			return &server{cmd: cmd, addr: m[1]}, nil
		}
		fmt.Fprint(os.Stderr, line)
	}
}

// stop ends the server as its user would, and returns the CPU time it took.
func (s *server) stop() (time.Duration, error) {
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return 0, err
	}
	if err := s.cmd.Wait(); err != nil {
		return 0, err
	}
	return s.cmd.ProcessState.UserTime() + s.cmd.ProcessState.SystemTime(), nil
}

func (b *bench) startRaw() (*server, error) {
	dir, err := b.fresh()
	if err != nil {
		return nil, err
	}
	return start(exec.Command(b.self, "raw", filepath.Join(dir, "raw")))
}

// startDiscard starts the raw server with nothing to write to: what reading a socket costs here,
// which tells machines apart.
func (b *bench) startDiscard() (*server, error) {
	return start(exec.Command(b.self, "raw", os.DevNull))
}

func (b *bench) startSpillway(to string, flags ...string) (*server, error) {
	dir, err := b.fresh()
	if err != nil {
		return nil, err
	}
	if to == "file" {
		abs, err := filepath.Abs(dir)
		if err != nil {
			return nil, err
		}
		to = (&url.URL{Scheme: "file", Path: filepath.Join(abs, "out.jsonl")}).String()
	}
	args := append([]string{
		"serve", "--listen", "forward://127.0.0.1:0", "--to", to, "--data",
		filepath.Join(dir, "data"),
	}, flags...)
	return start(exec.Command(b.spillway, args...))
}

func (b *bench) startRawAcks(how string, one []byte, at int) (*server, error) {
	dir, err := b.fresh()
	if err != nil {
		return nil, err
	}
	return start(exec.Command(b.self, how, filepath.Join(dir, "raw"), strconv.Itoa(len(one)), strconv.Itoa(at)))
}

// rawServer is the least a server could do: it reads what arrives and writes
// the bytes to a file, and neither looks at them nor answers.
func rawServer(path string) error {
	return rawServe(path, func(c net.Conn, f *os.File) error {
		buf := make([]byte, 64<<10)
		for {
			n, err := c.Read(buf)
			if _, werr := f.Write(buf[:n]); werr != nil {
				return werr
			}
			if err != nil {
				return nil // closing tells the sender that everything has been written
			}
		}
	})
}

// rawAckServer does the least for messages that want an ack each: it knows how
// long they are and where their ids stand, writes the bytes of one read to a
// file in one piece, and then their acks, in one piece or, as most servers do,
// one by one.
func rawAckServer(path string, size, at int, together bool) error {
	const fileSize = 64 << 20 // written over and over, as a recycled file would be
	var end atomic.Int64
	return rawServe(path, func(c net.Conn, f *os.File) error {
		buf, acks := make([]byte, 64<<10), make([]byte, 0, 64<<10)
		have := 0
		for {
			n, err := c.Read(buf[have:])
			if err != nil {
				return nil
			}
			have += n
			whole := have / size * size
			if whole == 0 {
				continue
			}
			if _, err := f.WriteAt(buf[:whole], end.Add(int64(whole))%fileSize); err != nil {
				return err
			}
			acks = acks[:0]
			for m := buf[:whole]; len(m) > 0; m = m[size:] {
				acks = append(acks, "\x81\xa3ack\xb8"...)
				acks = append(acks, m[at:at+len(id)]...)
				if !together {
					if _, err := c.Write(acks); err != nil {
						return nil
					}
					acks = acks[:0]
				}
			}
			if together {
				if _, err := c.Write(acks); err != nil {
					return nil
				}
			}
			have = copy(buf, buf[whole:have])
		}
	})
}

// rawServe listens and gives each connection, and one file for all, to serve.
func rawServe(path string, serve func(net.Conn, *os.File) error) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	term := make(chan os.Signal, 1)
	signal.Notify(term, syscall.SIGTERM)
	go func() {
		<-term
		os.Exit(0)
	}()
	fmt.Fprintf(os.Stderr, "listening forward://%s\n", l.Addr())
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer c.Close()
			if err := serve(c, f); err != nil {
				fail(err)
			}
		}()
	}
}
