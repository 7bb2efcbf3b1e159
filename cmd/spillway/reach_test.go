// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// TestReach: what is told of a server that cannot be reached, for a while or for ever.
func TestReach(t *testing.T) {
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	for _, tt := range []struct {
		name string
		do   func(r *reach)
		want string
	}{
		{"never down", func(r *reach) {
			end := r.begin(time.Minute)
			r.changed(true, nil)
			<-time.After(25 * time.Second)
			end()
		}, ""},
		{"down with nothing to send", func(r *reach) {
			r.begin(time.Minute)()
			r.changed(false, refused)
			<-time.After(time.Minute)
			r.changed(true, nil)
		}, ""},
		{"down for ever", func(r *reach) {
			end := r.begin(25 * time.Second)
			for range 50 {
				r.changed(false, refused)
				<-time.After(500 * time.Millisecond)
			}
			end()
			<-time.After(time.Minute)
		}, "connection refused; trying again for 25s\n" +
			"connection refused; still trying after 10s\n" +
			"connection refused; still trying after 20s\n"},
		{"back", func(r *reach) {
			end := r.begin(30 * time.Second)
			r.changed(false, refused)
			<-time.After(4 * time.Second)
			r.changed(true, nil)
			<-time.After(20 * time.Second)
			end()
		}, "connection refused; trying again for 30s\nconnected after 4s\n"},
		{"silent", func(r *reach) {
			end := r.begin(30 * time.Second)
			<-time.After(10500 * time.Millisecond)
			r.changed(true, nil)
			end()
		}, "no connection yet; still trying after 10s\nconnected after 11s\n"},
		{"to and fro", func(r *reach) { // a server that hangs up on whatever connects
			end := r.begin(15 * time.Second)
			for range 20 {
				r.changed(true, nil)
				r.changed(false, errors.New("forward: h:1: EOF"))
				<-time.After(700 * time.Millisecond)
			}
			end()
		}, "EOF; trying again for 15s\nconnected after 700ms\nEOF; still trying after 10s\nconnected after 11s\n"},
		{"later again", func(r *reach) {
			r.changed(true, nil)
			r.begin(30 * time.Second)()
			end := r.begin(30 * time.Second)
			<-time.After(2 * time.Second)
			r.changed(false, fmt.Errorf("forward: h:1: the login: %w", errors.New("denied")))
			end()
		}, "the login: denied; trying again for 28s\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var got bytes.Buffer
				tt.do(&reach{w: &got, url: "forward://h:1", address: "h:1"})
				synctest.Wait()
				if got := string(bytes.ReplaceAll(got.Bytes(), []byte("spillway: forward://h:1: "),
					nil)); got != tt.want {
					t.Errorf("got\n%swant\n%s", got, tt.want)
				}
			})
		})
	}
}
