// SPDX-License-Identifier: Apache-2.0

package fluent

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/msgpack"
)

// fakeConn is a connection whose ends are buffers.
type fakeConn struct {
	net.Conn
	wrote    bytes.Buffer
	incoming io.Reader
}

func (c *fakeConn) Write(p []byte) (int, error) { return c.wrote.Write(p) }
func (c *fakeConn) Read(p []byte) (int, error)  { return c.incoming.Read(p) }

// chunkOf makes a chunk as a client sends it.
func chunkOf(tag, id string, texts ...string) []byte {
	c := forward.Chunk{Tag: tag, Events: len(texts)}
	if id != "" {
		c.ID = []byte(id)
	}
	for i, s := range texts {
		c.Entries = msgpack.AppendArrayHeader(c.Entries, 2)
		c.Entries = forward.AppendEventTime(c.Entries, int64(100+i), 5)
		c.Entries = msgpack.AppendMapHeader(c.Entries, 1)
		c.Entries = msgpack.AppendString(c.Entries, "log")
		c.Entries = msgpack.AppendString(c.Entries, s)
	}
	return c.AppendTail(append(c.AppendHead(nil), c.Entries...))
}

func TestJSONConn(t *testing.T) {
	b := append(chunkOf("a.\"b\"", "id1", "one", "t\"wo"), chunkOf("c", "", "three")...)
	want := `["a.\"b\"",100,{"log":"one"},{}]["a.\"b\"",101,{"log":"t\"wo"},{"chunk":"id1"}]["c",100,{"log":"three"},{}]`
	for size := 1; size <= len(b); size++ {
		inner := &fakeConn{}
		c := newJSONConn(inner)
		for rest := b; len(rest) > 0; {
			n := min(size, len(rest))
			if k, err := c.Write(rest[:n]); err != nil || k != n {
				t.Fatal(k, err)
			}
			rest = rest[n:]
		}
		if got := inner.wrote.String(); got != want {
			t.Fatalf("in pieces of %d: %s", size, got)
		}
	}
	c := newJSONConn(&fakeConn{incoming: bytes.NewReader([]byte(`{"ack":"id1"} {"ack":"id\n2"}`))})
	var got []byte
	for p := make([]byte, 3); ; {
		n, err := c.Read(p)
		got = append(got, p[:n]...)
		if err != nil {
			break
		}
	}
	if string(got) != "\x81\xa3ack\xa3id1\x81\xa3ack\xa4id\n2" {
		t.Errorf("acks %q", got)
	}
	if _, err := c.Write([]byte("\xc1")); err == nil {
		t.Error("c1 is a message")
	}
}

// FuzzJSONConn: cutting the stream in two changes nothing, and what is written is JSON.
func FuzzJSONConn(f *testing.F) {
	f.Add(chunkOf("tag", "id", "a", "b"), 10)
	f.Add(append(chunkOf("\xff", "", ""), chunkOf("t", "\n", "\x00")...), 3)
	f.Fuzz(func(t *testing.T, b []byte, at int) {
		whole, cut := &fakeConn{}, &fakeConn{}
		_, err1 := newJSONConn(whole).Write(b)
		at = max(0, min(at, len(b)))
		c := newJSONConn(cut)
		_, err2 := c.Write(b[:at])
		if err2 == nil {
			_, err2 = c.Write(b[at:])
		}
		if (err1 == nil) != (err2 == nil) {
			t.Fatalf("whole: %v, cut: %v", err1, err2)
		}
		if err1 == nil && whole.wrote.String() != cut.wrote.String() {
			t.Fatalf("whole: %s, cut: %s", &whole.wrote, &cut.wrote)
		}
		for dec := json.NewDecoder(&cut.wrote); ; {
			var v []any
			if err := dec.Decode(&v); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestRetiringConn: the end comes when the interval is over, and not before the acks are in.
func TestRetiringConn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		c := newRetiringConn(near, time.Minute, true)
		ends := make(chan error, 1)
		acks := make(chan int, 10)
		go func() {
			for b := make([]byte, 100); ; {
				n, err := c.Read(b)
				if err != nil {
					ends <- err
					return
				}
				acks <- n
			}
		}()
		message := chunkOf("t", "id", "x")
		send := func() {
			go func() { _, _ = io.ReadFull(far, make([]byte, len(message))) }()
			if _, err := c.Write(message); err != nil {
				t.Fatal(err)
			}
		}
		ack := func() {
			if _, err := far.Write([]byte("\x81\xa3ack\xa2id")); err != nil {
				t.Fatal(err)
			}
			<-acks
		}
		send()
		ack()
		send()
		time.Sleep(2 * time.Minute) //nolint:forbidigo // in a bubble: its clock
		synctest.Wait()
		if len(ends) > 0 {
			t.Fatal("it ended with an ack to come")
		}
		send()
		ack()
		synctest.Wait()
		if len(ends) > 0 {
			t.Fatal("it ended with another ack to come")
		}
		ack()
		if err := <-ends; !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
		if _, err := c.Write(message); !errors.Is(err, errRetired) {
			t.Fatal(err)
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		_ = far.Close()
	})
}

// TestDeadlineConn: a slow reader is no reason to give up, one that stands still is.
func TestDeadlineConn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		c := &deadlineConn{Conn: near, timeout: time.Second}
		if err := c.SetWriteDeadline(time.Now().Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() {
			_, err := c.Write(make([]byte, 10*pieceSize))
			done <- err
		}()
		for range 10 {
			time.Sleep(900 * time.Millisecond) //nolint:forbidigo // in a bubble: its clock
			if _, err := io.ReadFull(far, make([]byte, pieceSize)); err != nil {
				t.Fatal(err)
			}
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if _, err := c.Write([]byte("x")); err == nil {
			t.Fatal("nobody read it")
		}
		if err := c.SetWriteDeadline(time.Unix(1, 0)); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Write([]byte("x")); err == nil {
			t.Fatal("the owner's deadline is over")
		}
		_, _ = near.Close(), far.Close()
	})
}
