// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/spillwaylog/spillway/forward"
)

// Options says what a Collector does. The zero value works: it listens on
// forward://127.0.0.1:24224, keeps its journal in ./spillway-data and writes
// JSON lines to standard output.
type Options struct {
	Listen []string // URLs of inputs, with their settings
	To     []string // URLs of outputs
	Dir    string   // the data directory; one process uses it at a time

	Ack Ack // what an ack promises; AckSynced

	JournalBytes  int64 // of disk for the journal; beyond, senders wait; 4 GiB
	MaxChunk      int64 // bytes of one message as it travels; 64 MiB
	MaxUnpacked   int64 // bytes of one chunk after decompression; 256 MiB
	Memory        int64 // bytes that all connections together buffer; 64 MiB
	RefuseInvalid bool  // refuse a chunk with an invalid entry instead of leaving the entry out

	Drain time.Duration // how long Run goes on after its context ended; 10 s

	Log    *slog.Logger // the collector's own messages; slog.Default()
	Stdout io.Writer    // of the output stdout:; os.Stdout
}

// withDefaults returns o with its zero values filled in, checked.
func (o *Options) withDefaults() (Options, error) {
	var f Options
	if o != nil {
		f = *o
	}
	if len(f.Listen) == 0 {
		f.Listen = []string{"forward://127.0.0.1:24224"}
	}
	if len(f.To) == 0 {
		f.To = []string{"stdout:"}
	}
	if f.Dir == "" {
		f.Dir = "spillway-data"
	}
	switch f.Ack {
	case "":
		f.Ack = AckSynced
	case AckJournaled, AckSynced, AckDelivered:
	default:
		return f, fmt.Errorf("ack %q: it is %s, %s or %s", f.Ack, AckJournaled, AckSynced, AckDelivered)
	}
	setDefault(&f.JournalBytes, 4<<30)
	setDefault(&f.MaxChunk, 64<<20)
	setDefault(&f.MaxUnpacked, 256<<20)
	setDefault(&f.Memory, forward.DefaultMemory)
	if f.Drain == 0 {
		f.Drain = 10 * time.Second
	}
	if f.Log == nil {
		f.Log = slog.Default()
	}
	if f.Stdout == nil {
		f.Stdout = os.Stdout
	}
	return f, nil
}

func setDefault(v *int64, d int64) {
	if *v == 0 {
		*v = d
	}
}
