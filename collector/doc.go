// SPDX-License-Identifier: Apache-2.0

// Package collector moves events from inputs through a journal to outputs.
//
//	inputs                     journal                    outputs
//	forward://  ─► store ────► append, flush, sync ─────► file://
//	forward+    (repeats are   each output follows        forward://
//	  tls://     left out)     with a cursor of its own   stdout:
//	forward+                                              discard:
//	  unix://
//	lines:// lines+unix:// stdin:
//	ring:///dev/shm
//	Config.InputKinds                                     Config.OutputKinds
//
// A Collector is opened, then run until its context ends:
//
//	c, err := collector.Open(&collector.Config{Outputs: []collector.End{{Name: "lines", URL: "file:///var/log/{tag}.jsonl"}}})
//	if err != nil {
//		return err
//	}
//	return c.Run(ctx)
//
// # Ends
//
// An end is an input or an output: a URL, and perhaps a name, which shows in Stats and logs. Where
// an output stands in the journal, and where the source of an input stands, is kept by the name:
// the URL may change then. Without a name it is kept by scheme and path. An end that gets a name,
// or another one, is a new one.
//
// Settings of an input are parameters of its URL: TLS, shared keys, users, rules
// for clients, tags, and what is added to records of who sent them. They name
// files and never hold secrets; docs/security.md lists them. The files are read
// again when they change, and by Apply.
//
// Inputs of lines make an event of each line (package internal/lines reads them): text, JSON or
// logfmt. They have no acks: what was read is in the journal before more is read, and what lies in
// a socket when the process is killed is lost. An input stdin: ends with its source; when all
// inputs have ended, Run hands on all of it and returns.
//
// An input ring: takes over what dead processes of the logger left in shared memory, and in their
// spills (package internal/heir). What was synced is removed there.
//
// Those of an output say how its lines name and write time and tag, see
// docs/lines.md. An output goes on where it was when they change.
//
// # Ends of other packages
//
// Config.InputKinds and Config.OutputKinds name them by the schemes of their URLs. A kind
// understands a URL and touches nothing; what it returns opens the end. The rules are
// at [Input], [Sink] and [Output]; [Serial] makes an Output of a function that delivers one chunk.
// In the repository, examples/ends has an input that follows a file and an output that posts to a
// server.
//
// Open understands all ends, then opens inputs before outputs; nothing is taken before Run. A panic
// in an end is not caught.
//
// # Positions
//
// An input that reads from where it can go on (a file, a queue that is read by offsets) gives the
// sink a position with its chunks. The position is stored in the record of the last of them, so a
// crash leaves both or neither: each event is stored once, though the source acks nothing. Chunks
// with the same tag and without ids become one record for that; see [Sink] for those with several
// tags.
//
//	 tag     entries   option map of the record
//	┌──────┬─────────┬───────────────────────────────────────────────────┐
//	│ str  │ bin     │ {"size": n, …, "position": [key of input, bin]}   │
//	└──────┴─────────┴───────────────────────────────────────────────────┘
//
// The cursor "positions" of the journal keeps the last one of each input, once a second; it is
// there while such inputs are configured. A position of an input that is not configured any more is
// given up at the start, and told.
//
// # Promises
//
// An ack means what Config.Ack says: that the chunk is on the disk, unless
// told otherwise. What is acked reaches every output, whatever happens to this
// process and, with AckSynced, to the machine's power.
//
// A chunk that a sender repeats because it missed the ack is recognised, across
// restarts and inputs too (those that make the same of its tag), and stored
// once: within an hour or the last 786,432
// acked chunks, whichever is less, which is 3.9 s at 200,000 acks a second.
// Stats tells how far back that reaches just now; what comes again after that is
// stored again. With an id of Spillway's own it is recognised wherever it comes
// from; with another it must come from the same address, on another connection
// than the one it was first received on.
//
// What an output forward:// sends to another collector has such an id, and the
// same one whenever it is sent: so events are once, and in their order, in what
// the last one writes, whichever of them is killed. With several hosts, what was
// in flight to one that fails may be on both.
//
// Events are accounted for: see Stats.
//
// A file output has each event once, across kill -9 as well, unless others
// write, rotate or replace its files just then, or the disk fails to sync them:
// bytes of others are never harmed, and an event may be in the file twice. The
// output stdout: is at least once.
//
// Outputs see chunks in the order stored; one connection's chunks are stored in
// the order sent.
//
// When the journal is full, or its disk fails, nothing is acked and dropped:
// inputs stop reading, and go on when there is room.
//
// # Not promised
//
// What asked for no ack is lost with the process if it was not read yet, and
// with the power if it was not synced yet (some 20 ms). An output that is added
// later gets only what the slowest of the others has not had.
package collector
