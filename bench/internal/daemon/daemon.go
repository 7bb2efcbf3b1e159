// SPDX-License-Identifier: Apache-2.0

// Package daemon is a Forward server that does as little as a server can: it reads, acks what asks
// for it, and forgets. It can also be a bad one.
package daemon

import (
	"bufio"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"

	"github.com/spillwaylog/spillway/msgpack"
)

// A Behaviour is how a daemon treats its clients.
type Behaviour int

// How it treats them.
const (
	BehaviourHealthy    Behaviour = iota // reads and acks
	BehaviourNeverAcks                   // reads only
	BehaviourNeverReads                  // accepts connections and leaves them alone
)

// Options are how to start a daemon. The zero value is a healthy one on a free port.
type Options struct {
	Behaviour Behaviour
}

// A Daemon is a running server.
type Daemon struct {
	behaviour Behaviour
	l         net.Listener
	bytes     atomic.Int64
	done      sync.WaitGroup

	mu     sync.Mutex
	conns  map[net.Conn]struct{}
	closed bool
}

// Start listens on a free port of 127.0.0.1.
func Start(o Options) (*Daemon, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	d := &Daemon{behaviour: o.Behaviour, l: l, conns: map[net.Conn]struct{}{}}
	d.done.Go(d.accept)
	return d, nil
}

// Addr is where it listens.
func (d *Daemon) Addr() string { return d.l.Addr().String() }

// Bytes is how much it has read.
func (d *Daemon) Bytes() int64 { return d.bytes.Load() }

// Close ends it, and all connections.
func (d *Daemon) Close() error {
	err := d.l.Close()
	d.mu.Lock()
	d.closed = true
	for c := range d.conns {
		c.Close()
	}
	d.mu.Unlock()
	d.done.Wait()
	return err
}

func (d *Daemon) accept() {
	for {
		c, err := d.l.Accept()
		if err != nil {
			return
		}
		d.mu.Lock()
		if d.closed {
			d.mu.Unlock()
			c.Close()
			return
		}
		d.conns[c] = struct{}{}
		d.mu.Unlock()
		if d.behaviour == BehaviourNeverReads {
			continue
		}
		d.done.Go(func() {
			d.serve(c)
			d.mu.Lock()
			delete(d.conns, c)
			d.mu.Unlock()
			c.Close()
		})
	}
}

// errOther says that a message is of a kind that is only read.
var errOther = errors.New("daemon: no packed message")

func (d *Daemon) serve(c net.Conn) {
	in := bufio.NewReaderSize(counted{c, &d.bytes}, 256<<10)
	if d.behaviour == BehaviourHealthy {
		for {
			id, err := packed(in)
			if errors.Is(err, errOther) {
				break
			}
			if err != nil {
				return
			}
			if id == "" {
				continue
			}
			ack := msgpack.AppendString(msgpack.AppendString(msgpack.AppendMapHeader(nil, 1), "ack"), id)
			if _, err := c.Write(ack); err != nil {
				return
			}
		}
	}
	_, _ = in.WriteTo(io.Discard) // to the end of the connection, however it comes
}

// packed skips one PackedForward message, without a look at the entries, and returns its id.
func packed(in *bufio.Reader) (string, error) {
	t, err := token(in)
	if err != nil {
		return "", err
	}
	if t.Kind != msgpack.KindArray || t.Len != 3 {
		return "", errOther
	}
	if err := skip(in); err != nil { // the tag
		return "", err
	}
	t, err = token(in)
	if err != nil {
		return "", err
	}
	if t.Kind != msgpack.KindBin && t.Kind != msgpack.KindStr {
		return "", errOther
	}
	if _, err := in.Discard(t.Len); err != nil {
		return "", err
	}
	t, err = token(in)
	if err != nil || t.Kind != msgpack.KindMap {
		return "", errors.Join(err, errOther)
	}
	id := ""
	for range t.Len {
		key, err := text(in)
		if err != nil {
			return "", err
		}
		if key != "chunk" {
			if err := skip(in); err != nil {
				return "", err
			}
			continue
		}
		if id, err = text(in); err != nil {
			return "", err
		}
	}
	return id, nil
}

// token reads the head of a value; what follows a Str or Bin stays.
func token(in *bufio.Reader) (msgpack.Token, error) {
	for n := 1; ; n++ {
		b, err := in.Peek(n)
		if err != nil {
			return msgpack.Token{}, err
		}
		t, size, err := msgpack.ReadToken(b)
		if err != nil {
			if n < 9 {
				continue
			}
			return t, err
		}
		_, err = in.Discard(size)
		return t, err
	}
}

func text(in *bufio.Reader) (string, error) {
	t, err := token(in)
	if err != nil {
		return "", err
	}
	if t.Kind != msgpack.KindStr {
		return "", errOther
	}
	b := make([]byte, t.Len)
	_, err = io.ReadFull(in, b)
	return string(b), err
}

// skip skips a value that has no others in it.
func skip(in *bufio.Reader) error {
	t, err := token(in)
	if err != nil {
		return err
	}
	switch t.Kind {
	case msgpack.KindStr, msgpack.KindBin, msgpack.KindExt:
		_, err = in.Discard(t.Len)
	case msgpack.KindArray, msgpack.KindMap:
		err = errOther
	}
	return err
}

type counted struct {
	r io.Reader
	n *atomic.Int64
}

func (c counted) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n.Add(int64(n))
	return n, err
}
