// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/needs"
	"github.com/spillwaylog/spillway/msgpack"
)

const positionsChild = "SPILLWAY_POSITIONS_CHILD"

// lineSize is how long each line of the source is.
const lineSize = 8

// readLines is an input that reads a file by byte offsets, some lines a chunk, some chunks a group.
// It writes a byte after each group, and ends the collector at the end of the file.
func readLines(f *os.File, rnd *rand.Rand, end func()) func(context.Context, Sink) error {
	return func(ctx context.Context, s Sink) error {
		var at uint64
		if p := s.Position(); p != nil {
			at = binary.BigEndian.Uint64(p)
		}
		r := bufio.NewReader(io.NewSectionReader(f, int64(at), 1<<40))
		for ctx.Err() == nil {
			var group []*forward.Chunk
			for range 1 + rnd.IntN(3) {
				c := &forward.Chunk{Tag: "t"}
				for range 1 + rnd.IntN(20) {
					line, err := r.ReadString('\n')
					if errors.Is(err, io.EOF) {
						break
					}
					if err != nil {
						return err
					}
					at += uint64(len(line))
					c.Entries = msgpack.AppendArrayHeader(c.Entries, 2)
					c.Entries = forward.AppendEventTime(c.Entries, 1_700_000_000, 5)
					c.Entries = msgpack.AppendMapHeader(c.Entries, 1)
					c.Entries = msgpack.AppendString(c.Entries, "line")
					c.Entries = msgpack.AppendString(c.Entries, strings.TrimSuffix(line, "\n"))
					c.Events++
				}
				if c.Events > 0 {
					group = append(group, c)
				}
			}
			if len(group) == 0 {
				end()
				<-ctx.Done()
				return nil
			}
			durable, err := s.Store(ctx, group, binary.BigEndian.AppendUint64(nil, at))
			if err == nil && rnd.IntN(3) == 0 {
				err = durable(ctx)
			}
			if err != nil {
				return err
			}
			fmt.Fprint(os.Stdout, ".")
		}
		return nil
	}
}

// TestPositionsKillChild is not a test but the process that TestPositionsKill kills.
func TestPositionsKillChild(t *testing.T) {
	dir, ack, _ := strings.Cut(os.Getenv(positionsChild), "|")
	if dir == "" {
		needs.Skip(t, "started by TestPositionsKill")
	}
	source, err := os.Open(filepath.Join(dir, "source"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	c, err := Open(&Config{
		Dir: filepath.Join(dir, "data"), Ack: Ack(ack), Outputs: Ends(fileURL(filepath.Join(dir, "out"))),
		Inputs: Ends("fake:a"),
		InputKinds: fakes(map[string]*fake{"a": {run: readLines(source, rand.New(rand.NewPCG(rand.Uint64(), 0)),
			end)}}),
		JournalBytes: 1 << 20, Drain: time.Minute, Log: logTo(os.Stderr),
	})
	if err != nil {
		t.Fatal(err)
	}
	c.positions.every = 5 * time.Millisecond
	if err := c.Run(ctx); err != nil {
		t.Fatal(err)
	}
}

// TestPositionsKill: each line of a file that an input reads by byte offsets is once in the output,
// whenever the collector is killed. No kill makes a dead letter of it.
func TestPositionsKill(t *testing.T) {
	for _, ack := range []Ack{AckSynced, AckJournaled} {
		t.Run(string(ack), func(t *testing.T) {
			t.Parallel()
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			rnd := rand.New(rand.NewPCG(seed, 0))
			dir := t.TempDir()
			const lines = 60_000
			var source, want bytes.Buffer
			for i := range lines {
				fmt.Fprintf(&source, "%0*d\n", lineSize-1, i)
				fmt.Fprintf(&want, `{"time":"2023-11-14T22:13:20.000000005Z","tag":"t","line":"%0*d"}`+"\n", lineSize-1,
					i)
			}
			if err := os.WriteFile(filepath.Join(dir, "source"), source.Bytes(), 0o600); err != nil {
				t.Fatal(err)
			}
			start := func() (*exec.Cmd, io.Reader, *syncBuffer) {
				c := exec.Command(os.Args[0], "-test.run", "^TestPositionsKillChild$")
				c.Env = append(os.Environ(), positionsChild+"="+dir+"|"+string(ack))
				log := new(syncBuffer)
				c.Stderr = log
				out, err := c.StdoutPipe()
				if err == nil {
					err = c.Start()
				}
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = c.Process.Kill() })
				return c, out, log
			}
			for range needs.Rounds(t, "SPILLWAY_KILLS", 20, 30) {
				c, out, _ := start()
				if n := rnd.IntN(60); n > 0 {
					_, _ = io.ReadFull(out, make([]byte, n)) // short: it is through
				}
				if err := c.Process.Kill(); err != nil {
					t.Fatal(err)
				}
				_ = c.Wait() // killed
			}
			c, out, log := start()
			text, err := io.ReadAll(out)
			if err := errors.Join(err, c.Wait()); err != nil {
				t.Fatalf("%v: %s\n%s", err, text, log)
			}
			if _, err := os.Stat(filepath.Join(dir, "data", lettersDir)); err == nil {
				t.Error("kills have made dead letters")
			}
			got, err := os.ReadFile(filepath.Join(dir, "out"))
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want.Bytes()) {
				t.Errorf("%d lines in the output of %d", bytes.Count(got, []byte("\n")), lines)
				for i, line := range bytes.SplitAfter(got, []byte("\n")) {
					if w := want.Next(len(line)); !bytes.Equal(line, w) {
						t.Fatalf("line %d: got %s want %s", i, line, w)
					}
				}
			}
		})
	}
}
