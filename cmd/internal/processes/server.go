// SPDX-License-Identifier: Apache-2.0

package processes

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// A server begins to listen at the socket of s before the time is taken, and sets s.stop.
type server func(ctx context.Context, s *session) error

// lastWords are of the last connection: when it is accepted, all that came before it were.
const lastWords = "end"

// patience is how long a server may take to accept, to listen, and to end.
const patience = time.Minute

// drain is the article's server: a thread for each connection, which reads and does no more. What
// was read is kept in memory, and looked at after the time was taken. Connections beyond the most
// at once wait where they are not accepted yet: clients that connect for each line are faster than
// this server, and would take all its descriptors.
func drain(_ context.Context, s *session) error {
	l, err := net.Listen("unix", filepath.Join(s.dir, socketName))
	if err != nil {
		return err
	}
	var mu sync.Mutex
	var all sync.WaitGroup
	var bad error
	s.received = new(bytes.Buffer)
	s.received.Grow(s.options.Processes * s.options.Lines * len(lineMark+lineWith+"123456\n"))
	places := make(chan struct{}, s.options.Processes+256)
	all.Go(func() {
		for {
			places <- struct{}{}
			c, err := l.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err != nil {
				mu.Lock()
				bad = errors.Join(bad, err, l.Close())
				mu.Unlock()
				return
			}
			all.Go(func() {
				defer func() { <-places }()
				b, err := io.ReadAll(c)
				mu.Lock()
				defer mu.Unlock()
				if string(b) == lastWords {
					bad = errors.Join(bad, l.Close())
				} else {
					s.received.Write(b)
				}
				bad = errors.Join(bad, err, c.Close())
			})
		}
	})
	before := ownCPU()
	s.stop = func() error {
		c, err := dial(filepath.Join(s.dir, socketName))
		if err == nil {
			_, err = io.WriteString(c, lastWords)
			err = errors.Join(err, c.Close())
		}
		if err != nil {
			return errors.Join(err, l.Close())
		}
		all.Wait()
		s.cpu += ownCPU() - before
		return bad
	}
	return nil
}

// collect is a collector which takes in what the loggers send and writes all of it to one file.
func collect(ctx context.Context, s *session) error {
	ctx, cancel := context.WithCancel(ctx)
	socket := filepath.Join(s.dir, socketName)
	c := &child{cmd: s.options.Collector(ctx, "--listen", "forward+unix://"+socket,
		"--to", "file://"+filepath.Join(s.dir, "log.all"), "--data", filepath.Join(s.dir, "data"))}
	c.cmd.Stderr = &c.said
	if err := c.cmd.Start(); err != nil {
		cancel()
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- c.wait() }()
	s.stop = func() error {
		defer cancel()
		err := c.cmd.Process.Signal(os.Interrupt)
		select {
		case e := <-ended:
			err = errors.Join(err, e)
		case <-time.After(patience):
			return errors.New("the collector does not end")
		}
		s.cpu += c.cmd.ProcessState.UserTime() + c.cmd.ProcessState.SystemTime()
		return err
	}
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for late := time.After(patience); ; {
		if nc, err := net.Dial("unix", socket); err == nil {
			return nc.Close()
		}
		select {
		case err := <-ended:
			cancel()
			return errors.Join(errors.New("the collector has ended"), err)
		case <-look.C:
		case <-late:
			cancel()
			return errors.Join(errors.New("the collector does not listen"), <-ended)
		}
	}
}
