// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"context"
	"io"
	"testing"

	"github.com/spillwaylog/spillway/internal/needs"
)

// looped is a handler whose groups have to be waited for now and then, as a journal's have.
type nothing struct{}

func (nothing) ServeForward(context.Context, *Chunk) error { return nil }

func (nothing) ServeGroup(context.Context, []*Chunk) (func(context.Context) error, error) {
	return nil, nil
}

// feedConn is a connection that AllocsPerRun feeds: each round is one message or more.
type feedConn struct {
	script
	data  []byte
	at    int
	round chan struct{}
	done  chan struct{}
}

func (f *feedConn) Read(p []byte) (int, error) {
	if f.at == len(f.data) {
		f.done <- struct{}{}
		if _, ok := <-f.round; !ok {
			return 0, io.EOF
		}
		f.at = 0
	}
	n := copy(p[:min(len(p), 50000)], f.data[f.at:])
	f.at += n
	return n, nil
}

func (f *feedConn) Write(p []byte) (int, error) { return len(p), nil }

func TestAllocations(t *testing.T) {
	if raceEnabled {
		needs.Skip(t, "the race detector makes pools forget")
	}
	for name, data := range map[string][]byte{
		"packed":       packedMessage("app.web", 1000, ""),
		"packed small": packedMessage("app.web", 10, ""),
		"forward":      unhex(hexForward),
		"message": unhex("93 a1 74 " + hexTime + " 81 a1 6d a1 62" + "93 a1 75 " + hexTime + " 81 a1 6d a1 62" +
			"93 a1 74 " + hexTime + " 81 a1 6d a1 62"),
		"message ack":   unhex("94 a1 74 " + hexTime + " 81 a1 6d a1 62 81" + hexChunk),
		"message times": unhex("93 a1 74 00 81 a1 6d a1 62" + "93 a1 74 00 81 a1 6d a1 62"),
		"gzip":          packedMessage("app.web", 1000, "gzip"),
		"rewritten":     unhex("92 a1 74 92 92 00 80 " + hexEntry1),
	} {
		t.Run(name, func(t *testing.T) {
			f := &feedConn{data: data, at: len(data), round: make(chan struct{}), done: make(chan struct{})}
			s := &Server{Handler: nothing{}}
			s.init()
			s.start(f, &s.Endpoint, nil)
			<-f.done
			n := testing.AllocsPerRun(200, func() {
				f.round <- struct{}{}
				<-f.done
			})
			close(f.round)
			s.running.Wait()
			if n != 0 {
				t.Errorf("%v allocations a round", n)
			}
		})
	}
}
