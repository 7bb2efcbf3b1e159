// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// largeChunk is read with its own reads.
func largeChunk(id string) *Chunk {
	return &Chunk{Tag: "t", ID: []byte(id), Entries: bytes.Repeat(unhex(hexEntry1), 1000), Events: 1000}
}

// sendFor sends n chunks, and waits for a while.
func sendFor(t *testing.T, c *Client, n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			if err := c.Send(ctx, largeChunk(string(rune('a'+i)))); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

// Over a link that takes longer for a window of chunks than a server may take for an ack, the
// chunks arrive once, for acks come all the while.
func TestClientSlowLink(t *testing.T) {
	c := &Client{AckTimeout: 10 * time.Second}
	withClient(t, c, func(_ int, far *fakeConn) {
		for {
			ch, err := far.next()
			if err != nil {
				return
			}
			<-time.After(3 * time.Second) // the link's and the server's, in a bubble
			far.ack(ch.ID)
		}
	}, func(t *testing.T, f *fake) {
		sendFor(t, c, 16)
		if st := c.Stats(); st.Connects != 1 || st.Failures != 0 || st.Resent != 0 {
			t.Errorf("%+v: %s", st, f.logged())
		}
	})
}

// The time for an ack begins when the chunk is written.
func TestClientSlowWrite(t *testing.T) {
	c := &Client{AckTimeout: 10 * time.Second}
	withClient(t, c, func(_ int, far *fakeConn) {
		<-time.After(6 * time.Second)
		ch, err := far.next()
		if err != nil {
			return
		}
		<-time.After(6 * time.Second)
		far.ack(ch.ID)
		far.drain()
	}, func(t *testing.T, f *fake) {
		sendFor(t, c, 1)
		if st := c.Stats(); st.Connects != 1 || st.Failures != 0 {
			t.Errorf("%+v: %s", st, f.logged())
		}
	})
}

// A chunk that is not read any further is given up, whatever was acked before, and so is the wait
// for it when its sender goes.
func TestClientWriteStops(t *testing.T) {
	for _, hang := range []bool{false, true} {
		c := &Client{AckTimeout: 10 * time.Second}
		withClient(t, c, func(n int, far *fakeConn) {
			ch, err := far.next()
			if err != nil {
				return
			}
			<-time.After(3 * time.Second)
			far.ack(ch.ID)
			if n > 1 {
				far.ackAll()
			}
			<-time.After(time.Minute)
		}, func(t *testing.T, f *fake) {
			result := make(chan error, 2)
			for _, id := range []string{"a", "b"} {
				if _, err := c.Start(largeChunk(id), func(err error) { result <- err }); err != nil {
					t.Fatal(err)
				}
			}
			began := time.Now()
			if hang {
				<-time.After(5 * time.Second)
				synctest.Wait()
				c.Disconnect(errors.New("enough"))
			}
			for range 2 {
				if err := <-result; err != nil {
					t.Error(err)
				}
			}
			if took := time.Since(began); f.conns != 2 || took > 20*time.Second || hang && took > 10*time.Second {
				t.Errorf("%d connections in %v: %s", f.conns, took, f.logged())
			}
		})
	}
}

// A chunk that was acked is done, while the next one is still being written.
func TestClientAckedWhileWriting(t *testing.T) {
	c := &Client{}
	withClient(t, c, func(_ int, far *fakeConn) {
		<-time.After(time.Second) // the first one is being written, and the others stand behind it
		for range 2 {
			ch, err := far.next()
			if err != nil {
				return
			}
			far.ack(ch.ID)
		}
		<-time.After(2 * time.Second)
		far.ackAll()
	}, func(t *testing.T, _ *fake) {
		var done atomic.Int32
		for _, id := range []string{"a", "b", "c", "d"} {
			ch := &Chunk{Tag: "t", ID: []byte(id), Entries: bytes.Repeat(unhex(hexEntry1), 10000), Events: 10000}
			if _, err := c.Start(ch, func(err error) {
				if done.Add(1); err != nil {
					t.Error(err)
				}
			}); err != nil {
				t.Fatal(err)
			}
		}
		for _, want := range []int32{2, 4} {
			<-time.After(2 * time.Second)
			synctest.Wait()
			if n := done.Load(); n != want {
				t.Errorf("%d are done, want %d", n, want)
			}
		}
	})
}
