// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	ackConnections = 4
	ackWindow      = 16
)

var single = shape{"an ack for each event", 1, func(int) ([]byte, int) { return ackedMessage() }}

// acks prints what an ack for each event costs, and how near the synced ones
// come to what the disk can do.
func (b *bench) acks() error {
	contenders := []contender{
		{"read, write, acks together, not looking", func() (*server, error) { return b.rawAcks(rawTogether) }, true},
		{"read, write, acks one by one, not looking", func() (*server, error) { return b.rawAcks(rawOneByOne) }, true},
		{
			"spillway, journaled", func() (*server, error) { return b.startSpillway("discard:", "--ack", "journaled") },
			true,
		},
		{"spillway, synced", func() (*server, error) { return b.startSpillway("discard:") }, true},
	}
	cpu := make([][]float64, len(contenders))
	rate := make([][]float64, len(contenders))
	var bare, ofBare []float64
	events := max(b.events/8, 1000)
	for range b.rounds {
		for i, c := range contenders {
			used, perSecond, err := b.ackRun(events, c.start)
			if err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
			cpu[i] = append(cpu[i], used.Seconds()/float64(events)*1e6)
			rate[i] = append(rate[i], perSecond)
		}
		perSecond, err := b.bareGroupCommit(events)
		if err != nil {
			return err
		}
		bare = append(bare, perSecond)
		ofBare = append(ofBare, rate[len(rate)-1][len(bare)-1]/perSecond)
	}
	fmt.Printf("\nan ack for each event, %d in flight on each of %d connections\n", ackWindow, ackConnections)
	fmt.Printf("%-44s %10s %10s %12s\n", "", "CPU s/M", "ratio", "events/s")
	for i, c := range contenders {
		fmt.Printf("%-44s %10.2f %10.2f %12.0f\n", c.name, median(cpu[i]), ratio(cpu[i], cpu[0]), median(rate[i]))
	}
	fmt.Printf("%-44s %10s %10s %12.0f\n", "bare group commit, as many waiters", "", "", median(bare))
	fmt.Printf("%-44s %10s %10s %12.2f\n", "synced by bare", "", "", median(ofBare))
	return nil
}

// What this program is called to be a server that acks without looking.
const (
	rawTogether = "raw-acks-together"
	rawOneByOne = "raw-acks-one-by-one"
)

func (b *bench) rawAcks(how string) (*server, error) {
	one, at := ackedMessage()
	return b.startRawAcks(how, one, at)
}

func (b *bench) ackRun(events int, start func() (*server, error)) (time.Duration, float64, error) {
	srv, err := start()
	if err != nil {
		return 0, 0, err
	}
	began := time.Now()
	if err := (load{
		shape: single, messages: events, connections: ackConnections,
		window: ackWindow,
	}).send(srv.addr); err != nil {
		return 0, 0, err
	}
	took := time.Since(began)
	used, err := srv.stop()
	return used, float64(events) / took.Seconds(), err
}

// bareGroupCommit is the most that a disk allows: as many goroutines as events
// can be in flight, each of which wants its event synced before the next; one
// write and one fdatasync for all that wait.
func (b *bench) bareGroupCommit(events int) (float64, error) {
	dir, err := b.fresh()
	if err != nil {
		return 0, err
	}
	f, err := os.Create(filepath.Join(dir, "bare"))
	if err != nil {
		return 0, err
	}
	defer f.Close()
	one, _ := ackedMessage()
	if _, err := f.Write(make([]byte, events*len(one))); err != nil {
		return 0, err
	}
	if err := f.Sync(); err != nil {
		return 0, err
	}
	type request chan error
	requests := make(chan request, ackConnections*ackWindow)
	began := time.Now()
	go func() {
		var at int64
		var batch []byte
		var waiting []request
		for r := range requests {
			batch, waiting = append(batch[:0], one...), append(waiting[:0], r)
			for more := true; more; {
				select {
				case r, more = <-requests:
					if more {
						batch, waiting = append(batch, one...), append(waiting, r)
					}
				default:
					more = false
				}
			}
			_, err := f.WriteAt(batch, at)
			at += int64(len(batch))
			if err == nil {
				err = unix.Fdatasync(int(f.Fd()))
			}
			for _, r := range waiting {
				r <- err
			}
		}
	}()
	var all sync.WaitGroup
	for range ackConnections * ackWindow {
		all.Go(func() {
			done := make(request, 1)
			for range events / (ackConnections * ackWindow) {
				requests <- done
				if err := <-done; err != nil {
					fail(err)
				}
			}
		})
	}
	all.Wait()
	close(requests)
	return float64(events) / time.Since(began).Seconds(), nil
}
