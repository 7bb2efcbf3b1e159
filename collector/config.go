// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/spillwaylog/spillway/forward"
)

// Config says what a Collector does. The zero value works: it listens on
// forward://127.0.0.1:24224, keeps its journal in ./spillway-data and writes
// JSON lines to standard output.
type Config struct {
	Inputs  []End   // where events come in
	Outputs []End   // where they go
	Routes  []Route // which of them go to which output, and what becomes of them on the way; none: all go everywhere
	Dir     string  // the data directory; one process uses it at a time

	// InputKinds and OutputKinds are ends of other packages, by the schemes of their URLs in small
	// letters. They come before the collector's own.
	InputKinds  map[string]InputKind
	OutputKinds map[string]OutputKind

	// Expressions compiles what a condition of a step says beyond comparisons with constants; nil:
	// that is a mistake there.
	Expressions func(text string) (*Expression, error)

	Ack Ack // what an ack promises; AckSynced

	JournalBytes  int64 // of disk for the journal; beyond, senders wait; 4 GiB
	LetterBytes   int64 // of disk for dead letters; beyond, the output that refuses waits; 256 MiB
	DropLetters   bool  // the oldest dead letters go instead, and are counted
	MaxChunk      int64 // bytes of one message as it travels; 64 MiB
	MaxUnpacked   int64 // bytes of one chunk after decompression; 256 MiB
	MaxEvent      int64 // bytes of one event as MessagePack; a larger one is a dead letter; 8 MiB
	Memory        int64 // bytes that all connections together buffer; 64 MiB; docs/serve.md has what comes besides
	RefuseInvalid bool  // refuse a chunk with an invalid entry instead of leaving the entry out

	Drain time.Duration // how long Run goes on after its context ended; 10 s
	// RemovedDrain is how long an output that Apply removes delivers what it has, and an input
	// finishes what has come; Drain.
	RemovedDrain time.Duration

	Log    *slog.Logger             // the collector's own messages; slog.Default()
	Synced func(took time.Duration) // told of each sync of the journal; it must not block

	Stdin  io.Reader // of the input stdin:; os.Stdin
	Stdout io.Writer // of the output stdout:; os.Stdout
}

// What a Config without inputs, or without outputs, has.
const (
	DefaultInput  = "forward://127.0.0.1:24224"
	DefaultOutput = "stdout:"
)

// An End is an input or an output.
type End struct {
	// Name is what the end is called in Stats, logs and the data directory: 1 to 64 letters,
	// digits, dots, dashes and underscores. Where an output with a name stands in the journal is
	// kept under it, and so is where the source of an input stands: the URL may change. Without a
	// name that belongs to scheme and path.
	Name string
	URL  string // with its settings
}

// String returns NAME=URL, or the URL alone, as ParseEnd reads it.
func (e End) String() string {
	if e.Name == "" {
		return e.URL
	}
	return e.Name + "=" + e.URL
}

// Ends are ends without names.
func Ends(urls ...string) []End {
	ends := make([]End, len(urls))
	for i, u := range urls {
		ends[i].URL = u
	}
	return ends
}

// ParseEnd reads NAME=URL, or a URL alone.
func ParseEnd(text string) (End, error) {
	if text == "" { // a variable of the shell that is not set
		return End{}, errors.New("the URL is empty")
	}
	name, url, named := strings.Cut(text, "=")
	if !named || strings.ContainsAny(name, ":/?") {
		return End{URL: text}, nil
	}
	if name == "" {
		return End{}, fmt.Errorf("%s: there is no name before the =", text)
	}
	e := End{Name: name, URL: url}
	return e, e.check()
}

// maxName is the longest name of an end.
const maxName = 64

func (e *End) check() error {
	if e.Name == "" && e.URL != "" {
		return nil
	}
	for _, c := range []byte(e.Name) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '.', c == '-', c == '_':
		default:
			return fmt.Errorf("the name %q: it may have letters, digits, dots, dashes and underscores", e.Name)
		}
	}
	switch {
	case e.Name == "":
		return fmt.Errorf("an end without a name and a URL")
	case len(e.Name) > maxName:
		return fmt.Errorf("the name %q: it may have %d characters", e.Name, maxName)
	case e.URL == "":
		return fmt.Errorf("%s= has no URL", e.Name)
	}
	return nil
}

// checkEnds refuses names that are none, or given twice.
func checkEnds(ends []End) error {
	seen := map[string]bool{}
	for i := range ends {
		e := &ends[i]
		if err := e.check(); err != nil {
			return err
		}
		name := strings.ToLower(e.Name) // it is part of a file's name, and some file systems do not tell letters apart
		if name != "" && seen[name] {
			return fmt.Errorf("the name %q is given twice", e.Name)
		}
		seen[name] = true
	}
	return nil
}

// withDefaults returns c with its zero values filled in, checked.
func (c *Config) withDefaults() (Config, error) {
	var f Config
	if c != nil {
		f = *c
	}
	if len(f.Inputs) == 0 {
		f.Inputs = Ends(DefaultInput)
	}
	if len(f.Outputs) == 0 {
		f.Outputs = Ends(DefaultOutput)
	}
	for _, ends := range [][]End{f.Inputs, f.Outputs} {
		if err := checkEnds(ends); err != nil {
			return f, err
		}
	}
	f.Dir = cmp.Or(f.Dir, "spillway-data")
	switch f.Ack {
	case "":
		f.Ack = AckSynced
	case AckJournaled, AckSynced, AckDelivered:
	default:
		return f, fmt.Errorf("ack %q: it is %s, %s or %s", f.Ack, AckJournaled, AckSynced, AckDelivered)
	}
	f.JournalBytes = cmp.Or(f.JournalBytes, 4<<30)
	f.LetterBytes = cmp.Or(f.LetterBytes, 256<<20)
	f.MaxChunk = cmp.Or(f.MaxChunk, 64<<20)
	f.MaxUnpacked = cmp.Or(f.MaxUnpacked, 256<<20)
	f.MaxEvent = cmp.Or(f.MaxEvent, 8<<20)
	f.Memory = cmp.Or(f.Memory, forward.DefaultMemory)
	f.Drain = cmp.Or(f.Drain, 10*time.Second)
	f.RemovedDrain = cmp.Or(f.RemovedDrain, f.Drain)
	f.Log = cmp.Or(f.Log, slog.Default())
	f.Stdin = cmp.Or[io.Reader](f.Stdin, os.Stdin)
	f.Stdout = cmp.Or[io.Writer](f.Stdout, os.Stdout)
	return f, nil
}
