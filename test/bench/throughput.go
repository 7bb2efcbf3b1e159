// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"syscall"
	"time"

	"github.com/klauspost/compress/gzip"
)

// contender is one program of a table.
type contender struct {
	name  string
	start func() (*server, error)
	acked bool
}

// throughput prints the CPU time per million events of one shape.
func (b *bench) throughput(s shape) error {
	contenders := []contender{
		{"read, write raw bytes to a file", b.startRaw, false},
		{"read, discard", b.startDiscard, false},
		{"spillway, synced journal", func() (*server, error) { return b.startSpillway("discard:") }, s.events > 1},
		{
			"spillway, synced journal, JSON lines", func() (*server, error) { return b.startSpillway("file") },
			s.events > 1,
		},
	}
	cpu := make([][]float64, len(contenders))
	rate := make([][]float64, len(contenders))
	var bare []float64
	one, _ := s.build(s.events)
	messages := b.events / s.events
	for range b.rounds {
		for i, c := range contenders {
			l := load{shape: s, messages: messages, connections: 2}
			if c.acked {
				l.window = 16
			}
			srv, err := c.start()
			if err != nil {
				return err
			}
			began := time.Now()
			if err := l.send(srv.addr); err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
			took := time.Since(began)
			used, err := srv.stop()
			if err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
			cpu[i] = append(cpu[i], used.Seconds()/float64(b.events)*1e6)
			rate[i] = append(rate[i], float64(b.events)/took.Seconds()/1e6)
		}
		if s.name == gzipped.name {
			used, err := bareGunzip(gzipBytes(entries(s.events)), messages)
			if err != nil {
				return err
			}
			bare = append(bare, used.Seconds()/float64(b.events)*1e6)
		}
	}
	fmt.Printf("\n%s: %d bytes a message\n", s.name, len(one))
	fmt.Printf("%-40s %12s %10s %10s\n", "", "CPU s/M", "ratio", "M events/s")
	for i, c := range contenders {
		fmt.Printf("%-40s %12.3f %10.2f %10.2f\n", c.name, median(cpu[i]), ratio(cpu[i], cpu[0]), median(rate[i]))
	}
	if len(bare) > 0 {
		fmt.Printf("%-40s %12.3f\n", "bare gunzip of the same bytes", median(bare))
	}
	return nil
}

// ratio is the median of the ratios round by round.
func ratio(a, b []float64) float64 {
	r := make([]float64, len(a))
	for i := range a {
		r[i] = a[i] / b[i]
	}
	return median(r)
}

// bareGunzip returns the CPU time of decompressing b n times.
func bareGunzip(b []byte, n int) (time.Duration, error) {
	before := ownCPU()
	in := bytes.NewReader(b)
	z, err := gzip.NewReader(in)
	if err != nil {
		return 0, err
	}
	out := make([]byte, 64<<10)
	for range n {
		in.Reset(b)
		if err := z.Reset(in); err != nil {
			return 0, err
		}
		for err = nil; err == nil; {
			_, err = z.Read(out)
		}
		if !errors.Is(err, io.EOF) {
			return 0, err
		}
	}
	return ownCPU() - before, nil
}

func ownCPU() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		fail(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
