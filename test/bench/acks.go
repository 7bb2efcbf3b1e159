// SPDX-License-Identifier: Apache-2.0

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
	var journaled, synced, bare, cpu, rawCPU, perSecond []float64
	events := max(b.events/8, 1000)
	few := max(events/10, 1000)
	for range b.rounds {
		used, _, err := b.ackRun(events, func() (*server, error) { return b.startRawAcks(ackedMessage()) })
		if err != nil {
			return err
		}
		rawCPU = append(rawCPU, used.Seconds()/float64(events)*1e6)
		used, rate, err := b.ackRun(events, func() (*server, error) { return b.startSpillway("discard:", "--ack", "journaled") })
		if err != nil {
			return err
		}
		cpu = append(cpu, used.Seconds()/float64(events)*1e6)
		journaled = append(journaled, rate)
		if _, rate, err = b.ackRun(few, func() (*server, error) { return b.startSpillway("discard:") }); err != nil {
			return err
		}
		synced = append(synced, rate)
		if rate, err = b.bareGroupCommit(few); err != nil {
			return err
		}
		bare = append(bare, rate)
		perSecond = append(perSecond, synced[len(synced)-1]/rate)
	}
	fmt.Printf("\nan ack for each event, %d in flight on each of %d connections\n", ackWindow, ackConnections)
	fmt.Printf("%-40s %12.3f CPU s/M\n", "read, write, ack without looking", median(rawCPU))
	fmt.Printf("%-40s %12.3f CPU s/M %12.0f events/s\n", "spillway, journaled", median(cpu), median(journaled))
	fmt.Printf("%-40s %12s         %12.0f events/s\n", "spillway, synced", "", median(synced))
	fmt.Printf("%-40s %12s         %12.0f events/s\n", "bare group commit, as many waiters", "", median(bare))
	fmt.Printf("%-40s %12.2f\n", "synced by bare", median(perSecond))
	return nil
}

func (b *bench) ackRun(events int, start func() (*server, error)) (time.Duration, float64, error) {
	srv, err := start()
	if err != nil {
		return 0, 0, err
	}
	began := time.Now()
	if err := (load{shape: single, messages: events, connections: ackConnections, window: ackWindow}).send(srv.addr); err != nil {
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
