// SPDX-License-Identifier: Apache-2.0

package processes

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spillwaylog/spillway"
)

// A way is one in which a process gets rid of its lines.
type way struct {
	name   string // as --way has it
	says   string // as a table has it
	server server // what has to listen; nil: nothing
	write  func(p *process) error
}

// ways are the five of the article, what one would write by hand instead of a logger, and the
// logger.
var ways = []way{
	{"lock", "one file, opened and locked for each line", nil, lockEach},
	{"connect", "a socket, connected for each line", drain, connectEach},
	{"socket", "a socket, kept open", drain, connectOnce},
	{"open", "a file per process, opened for each line", nil, openEach},
	{"file", "a file per process, kept open", nil, openOnce},
	{"json", "the same with JSON lines, built by hand", nil, jsonOnce},
	{"spillway", "Spillway, a file per process", nil, spillwayFile},
	{"shared-append", "Spillway, one file, shared=append", nil, spillwayAppend},
	{"shared-lock", "Spillway, one file, shared=lock", nil, spillwayLock},
	{"collector", "Spillway, through a collector into one file", collect, spillwayCollector},
}

// Ways are the names of all ways, in the order of a table.
func Ways() []string {
	names := make([]string, len(ways))
	for i, w := range ways {
		names[i] = w.name
	}
	return names
}

// A process is one of those that write.
type process struct {
	number, lines int
	dir           string // where files go, and where the socket is
}

// Write writes lines of process number in a way, as one of the processes that Run starts.
func Write(name string, number, lines int, dir string) error {
	for _, w := range ways {
		if w.name == name {
			return w.write(&process{number, lines, dir})
		}
	}
	return fmt.Errorf("no way %q", name)
}

const socketName = "bench.sock"

func (p *process) socket() string { return filepath.Join(p.dir, socketName) }

func (p *process) ownFile() string {
	return filepath.Join(p.dir, "log."+strconv.Itoa(os.Getpid()))
}

// message is what a line says: a mark, the line's number and the process's, as in the article.
func (p *process) message(b []byte, i int) []byte {
	b = strconv.AppendInt(append(b, lineMark...), int64(i), 10)
	return strconv.AppendInt(append(b, lineWith...), int64(p.number), 10)
}

func (p *process) line(b []byte, i int) []byte { return append(p.message(b, i), '\n') }

// each calls write with line after line.
func (p *process) each(write func(line []byte) error) error {
	var b []byte
	for i := range p.lines {
		b = p.line(b[:0], i)
		if err := write(b); err != nil {
			return err
		}
	}
	return nil
}

func openAppend(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o666)
}

func lockEach(p *process) error {
	path := filepath.Join(p.dir, "log")
	return p.each(func(line []byte) error {
		f, err := openAppend(path)
		if err != nil {
			return err
		}
		if err = lock(f); err == nil {
			_, err = f.Write(line)
		}
		return errors.Join(err, f.Close()) // which unlocks
	})
}

func connectEach(p *process) error {
	return p.each(func(line []byte) error {
		c, err := dial(p.socket())
		if err != nil {
			return err
		}
		_, err = c.Write(line)
		return errors.Join(err, c.Close())
	})
}

func connectOnce(p *process) error {
	c, err := dial(p.socket())
	if err != nil {
		return err
	}
	return errors.Join(p.each(func(line []byte) error {
		_, err := c.Write(line)
		return err
	}), c.Close())
}

// dial connects, and tries again while the server has more connections to accept than it may have
// waiting: a socket of this kind says so at once.
func dial(path string) (net.Conn, error) {
	c, err := net.Dial("unix", path)
	for late := time.Now().Add(patience); busy(err) && time.Now().Before(late); {
		<-time.After(100 * time.Microsecond)
		c, err = net.Dial("unix", path)
	}
	return c, err
}

func openEach(p *process) error {
	path := p.ownFile()
	return p.each(func(line []byte) error {
		f, err := openAppend(path)
		if err != nil {
			return err
		}
		_, err = f.Write(line)
		return errors.Join(err, f.Close())
	})
}

func openOnce(p *process) error {
	return p.buffered(func(w io.Writer) error {
		return p.each(func(line []byte) error {
			_, err := w.Write(line)
			return err
		})
	})
}

// jsonOnce writes what the logger writes, with as little as can be done for it: no levels, no
// fields, no second goroutine, and nothing that outlives a kill.
func jsonOnce(p *process) error {
	return p.buffered(func(w io.Writer) error {
		var b []byte
		for i := range p.lines {
			b = time.Now().UTC().AppendFormat(append(b[:0], `{"time":"`...), "2006-01-02T15:04:05.000000000Z")
			b = append(b, `","tag":"bench","level":"INFO","msg":"`...)
			b = append(p.message(b, i), "\"}\n"...)
			if _, err := w.Write(b); err != nil {
				return err
			}
		}
		return nil
	})
}

func (p *process) buffered(fn func(w io.Writer) error) error {
	f, err := openAppend(p.ownFile())
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, 64<<10)
	return errors.Join(fn(w), w.Flush(), f.Close())
}

func spillwayFile(p *process) error {
	return p.log("file://" + filepath.Join(p.dir, "log.{pid}"))
}

func spillwayAppend(p *process) error {
	return p.log("file://" + filepath.Join(p.dir, "log") + "?shared=append")
}

func spillwayLock(p *process) error {
	return p.log("file://" + filepath.Join(p.dir, "log") + "?shared=lock")
}

func spillwayCollector(p *process) error { return p.log("forward+unix://" + p.socket()) }

// log waits where there is no room: lines that are refused would be no comparison.
func (p *process) log(to string) error {
	l, err := spillway.Open(to, &spillway.Options{
		Tag: "bench", Name: "bench-" + strconv.Itoa(p.number), Overflow: spillway.OverflowBlock, MaxWait: time.Hour,
	})
	if err != nil {
		return err
	}
	var b []byte
	for i := range p.lines {
		b = p.message(b[:0], i)
		l.Info(string(b))
	}
	return l.Close(context.Background())
}
