// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/follow"
	"github.com/spillwaylog/spillway/internal/letters"
	"github.com/spillwaylog/spillway/internal/needs"
	"github.com/spillwaylog/spillway/internal/output"
)

const deadlyChild = "SPILLWAY_DEADLY_CHILD"

// deadly is a file output that ends the process on chunks of the tag "deadly".
type deadly struct{ output.Resumer }

func (d deadly) Submit(c *forward.Chunk, done func(Result)) {
	if c.Tag == "deadly" {
		me, err := os.FindProcess(os.Getpid())
		if err == nil {
			_ = me.Kill()
		}
		select {}
	}
	d.Resumer.Submit(c, done)
}

// deadlyKind are outputs such as deadly:///path.
func deadlyKind(u *URL, _ *Params) (*OutputPlan, error) {
	return &OutputPlan{Open: func(*OutputEnv) (Output, error) {
		o, err := output.NewFile(&output.FileConfig{Path: u.Path, Sync: true})
		if err != nil {
			return nil, err
		}
		return deadly{o.(output.Resumer)}, nil
	}}, nil
}

const deadlyChunks = 50

// deadlyChunk is the chunk that is stored at i, of two events.
func deadlyChunk(i int) *forward.Chunk {
	tag := "app"
	if i == deadlyChunks/2 {
		tag = "deadly"
	}
	c := numbered(tag, 2*i, 2)
	c.ID = fmt.Appendf(nil, "chunk-%d", i)
	return c
}

// TestDeadlyChild is not a test but the process that a record ends.
func TestDeadlyChild(t *testing.T) {
	dir := os.Getenv(deadlyChild)
	if dir == "" {
		needs.Skip(t, "started by TestDeadlyRecord")
	}
	ctx, end := context.WithCancel(t.Context())
	in := &fake{run: func(ctx context.Context, s Sink) error {
		var all []*forward.Chunk
		for i := range deadlyChunks {
			all = append(all, deadlyChunk(i))
		}
		durable, err := s.Store(ctx, all, nil)
		if err == nil {
			err = durable(ctx)
		}
		if err != nil {
			return err
		}
		for ctx.Err() == nil { // until a look at the file says that all is there
			if b, _ := os.ReadFile(filepath.Join(dir, "deadly")); bytes.Count(b, []byte("\n")) >= 2*(deadlyChunks-1) {
				end()
			}
			select {
			case <-ctx.Done():
			case <-time.After(10 * time.Millisecond):
			}
		}
		return nil
	}}
	c, err := Open(&Config{
		Dir: filepath.Join(dir, "data"), Inputs: Ends("fake:a"), InputKinds: fakes(map[string]*fake{"a": in}),
		Outputs: Ends("deadly://"+filepath.ToSlash(filepath.Join(dir, "deadly")),
			fileURL(filepath.Join(dir, "out"))),
		OutputKinds: map[string]OutputKind{"deadly": deadlyKind}, Drain: time.Minute, Log: logTo(os.Stderr),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Run(ctx); err != nil {
		t.Fatal(err)
	}
}

// TestDeadlyRecord: a record on which the process dies is a dead letter after three trials, and all
// else arrives, once and in order, at this output and at others.
func TestDeadlyRecord(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	start := func() (*syncBuffer, error) {
		c := exec.Command(os.Args[0], "-test.run", "^TestDeadlyChild$", "-test.timeout", "10m")
		c.Env = append(os.Environ(), deadlyChild+"="+dir)
		log := new(syncBuffer)
		c.Stdout, c.Stderr = log, log
		return log, c.Run()
	}
	for i := range 5 {
		if log, err := start(); err == nil {
			t.Fatalf("start %d did not end the process: %s", i+1, log)
		}
	}
	log, err := start()
	if err != nil {
		t.Fatalf("at the sixth start: %v\n%s", err, log)
	}
	if !strings.Contains(log.String(), "ended three times") {
		t.Errorf("it does not say so: %s", log)
	}
	var want, all strings.Builder
	for i := range deadlyChunks {
		text := numberedLines(deadlyChunk(i).Tag, 2*i, 2)
		all.WriteString(text)
		if deadlyChunk(i).Tag != "deadly" {
			want.WriteString(text)
		}
	}
	wantFile(t, filepath.Join(dir, "deadly"), want.String())
	wantFile(t, filepath.Join(dir, "out"), all.String())
	l, err := letters.Read(filepath.Join(dir, "data", lettersDir))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	err = l.Letters(func(e *letters.Entry) bool {
		n++
		if e.Err != nil || e.Chunk.Tag != "deadly" || e.Events() != 2 || !strings.Contains(e.Reason, "three times") {
			t.Errorf("%+v", e.Letter)
		}
		return true
	})
	if err != nil || n != 1 {
		t.Errorf("%d letters, %v", n, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "data", inHandFile)); err == nil {
		t.Error("the file is there after an end in good order")
	}
}

// TestInHandFile: what a process noted is what the next one reads, whatever else stands in the
// file.
func TestInHandFile(t *testing.T) {
	dir := t.TempDir()
	h, err := openInHand(dir)
	if err != nil {
		t.Fatal(err)
	}
	h.runs()
	c := h.of(1, "b", 100)
	if c.Died || c.Last != (follow.Note{}) {
		t.Errorf("at first %+v", c)
	}
	note := follow.Note{Finished: 7 << 32, Alone: true, Trials: 2}
	c.Note(note)
	if err := h.file.Close(); err != nil {
		t.Fatal(err)
	}
	h, err = openInHand(dir)
	if err != nil {
		t.Fatal(err)
	}
	h.keep([]string{"b", "a"})
	if c := h.of(0, "b", 100); !c.Died || c.Last != note {
		t.Errorf("after a death %+v", c)
	}
	if err := h.close(); err != nil { // it has not run
		t.Fatal(err)
	}
	h, err = openInHand(dir)
	if err != nil {
		t.Fatal(err)
	}
	if c := h.of(0, "b", 100); !c.Died || c.Last != note {
		t.Errorf("after a start that came to nothing %+v", c)
	}
	h.runs()
	if err := h.close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(h.path); err == nil {
		t.Error("the file is there after a good end")
	}
}

// FuzzInHand: whatever the file holds, it is read, and only what has the right sum counts.
func FuzzInHand(f *testing.F) {
	f.Add(make([]byte, inHandSlot))
	f.Fuzz(func(t *testing.T, b []byte) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, inHandFile), b, 0o600); err != nil {
			t.Fatal(err)
		}
		h, err := openInHand(dir)
		if err != nil || !h.died {
			t.Fatal(h, err)
		}
		if len(h.last) > len(b)/inHandSlot {
			t.Fatal(h.last)
		}
		if err := h.file.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestInHandNotThere: a collector starts, and ends, where the file cannot be.
func TestInHandNotThere(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, inHandFile, "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	h, err := openInHand(dir)
	if err == nil {
		t.Fatal("a directory was opened as a file")
	}
	h.keep([]string{"a"})
	h.of(0, "a", 0).Note(follow.Note{Alone: true})
	h.runs()
	if err := h.close(); err != nil {
		t.Error(err)
	}
}
