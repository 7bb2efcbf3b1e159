// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"sync"
	"testing"
)

const killDir = "SPILLWAY_JOURNAL_KILL_DIR"

// TestKilled starts itself as a child that appends from several goroutines and says what Flush
// returned for; kills it in the middle; and reads. All that was said must be there, whole, in each
// goroutine's order.
func TestKilled(t *testing.T) {
	if dir := os.Getenv(killDir); dir != "" {
		killedChild(dir)
		return
	}
	dir := t.TempDir()
	said := map[uint64]bool{}
	rounds := 12
	if testing.Short() {
		rounds = 3
	}
	for round := range rounds {
		cmd := exec.Command(os.Args[0], "-test.run=^TestKilled$")
		cmd.Env = append(os.Environ(), killDir+"="+dir, fmt.Sprintf("ROUND=%d", round))
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		r := bufio.NewReader(out)
		for stop := 1 + rand.IntN(3000); ; stop-- {
			var n uint64
			if err := binary.Read(r, binary.LittleEndian, &n); err != nil {
				break // what was said before it was killed has been read
			}
			said[n] = true
			if stop == 0 {
				_ = cmd.Process.Kill()
			}
		}
		_ = cmd.Wait()

		j, err := Open(dir, &Options{Report: func(err error) {
			if !errors.Is(err, ErrCorrupt) { // a record cut short where the child died
				t.Error(err)
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		got := map[uint64]bool{}
		last := map[uint64]uint64{}
		rd := mustReader(t, j, "check")
		recs, _ := readAll(t, rd)
		for _, rec := range recs {
			n := binary.LittleEndian.Uint64(rec)
			if !bytes.Equal(rec, testRecord(n, killSize(n))) {
				t.Fatalf("record %x was not appended like this", n)
			}
			if w := n >> 32; n <= last[w] {
				t.Fatalf("record %x after %x", n, last[w])
			} else {
				last[w] = n
			}
			got[n] = true
		}
		for n := range said {
			if !got[n] {
				t.Fatalf("round %d: record %x was flushed and is lost", round, n)
			}
		}
		if err := errors.Join(rd.Close(), j.RemoveCursor("check"), j.Close()); err != nil {
			t.Fatal(err)
		}
	}
	if len(said) < rounds {
		t.Errorf("only %d records in all", len(said))
	}
}

func killSize(n uint64) int {
	if n%97 == 0 {
		return 200_000
	}
	return 8 + int(n*7919%3000)
}

func killedChild(dir string) {
	j, err := Open(dir, &Options{SegmentBytes: 1 << 20})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	var round uint64
	fmt.Sscan(os.Getenv("ROUND"), &round)
	var mu sync.Mutex
	for w := range uint64(4) {
		go func() {
			for i := uint64(1); ; i++ {
				n := (round*4+w)<<32 | i
				p, err := j.Append(testRecord(n, killSize(n)))
				if err == nil {
					err = j.Flush(bg, p)
				}
				if err != nil {
					fmt.Fprintln(os.Stderr, err)
					os.Exit(1)
				}
				mu.Lock()
				_ = binary.Write(os.Stdout, binary.LittleEndian, n)
				mu.Unlock()
			}
		}()
	}
	select {}
}
