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
// An end is an input or an output: a URL, and perhaps a name, which shows in Stats and logs. The
// collector keeps under the name where an output stands in the journal, and where the source of an
// input stands. So the URL of an end with a name may change. Without a name the place is kept under
// scheme and path. An end that gets a name, or another one, is a new end.
//
// Settings of an input are parameters of its URL: TLS, shared keys, users, rules for clients, tags,
// and what is added to records about their senders. They name files and never hold secrets;
// docs/security.md lists them. The files are read again when they change, and by Apply.
//
// Inputs of lines make an event of each line (package internal/lines reads them): text, JSON or
// logfmt. They have no acks: what was read is in the journal before more is read, and what lies in
// a socket when the process is killed is lost. An input stdin: ends with its source. When all
// inputs have ended, Run hands on all that was read and returns.
//
// An input ring: takes over what dead processes of the logger left in shared memory, and in their
// spills (package internal/successor). What was synced is removed there.
//
// Parameters of an output say how its lines name and write time and tag, see docs/lines.md. When
// they change, the output goes on where it was.
//
// # Ends of other packages
//
// Config.InputKinds and Config.OutputKinds have them by the schemes of their URLs. A kind reads a
// URL and opens nothing; it returns a function that opens the end. The rules are at [Input], [Sink]
// and [Output]; [Serial] makes an Output of a function that delivers one chunk. In the repository,
// examples/ends has an input that follows a file and an output that posts to a server.
//
// Open reads all URLs, then opens inputs before outputs. No event is taken before Run. A panic in
// an end is not caught.
//
// # Positions
//
// An input whose source can be read again from a position (a file, a queue with offsets) gives the
// sink a position with its chunks. The position is stored in the record of the last of them, so a
// crash leaves both or neither: each event is stored once, though nothing is acked to the source.
// Chunks with the same tag and without ids become one record for that; see [Sink] for those with
// several tags.
//
//	 tag     entries   option map of the record
//	┌──────┬─────────┬───────────────────────────────────────────────────┐
//	│ str  │ bin     │ {"size": n, …, "position": [key of input, bin]}   │
//	└──────┴─────────┴───────────────────────────────────────────────────┘
//
// The cursor "positions" of the journal keeps the last one of each input, once a second; it is
// there while such inputs are configured. A position of an input that is not configured any more is
// given up at the start, and reported.
//
// # Promises
//
// An ack means what Config.Ack says: without it, that the chunk is on the disk. What is acked
// reaches every output, whatever happens to this process and, with AckSynced, to the machine's
// power.
//
// A chunk that a sender repeats because it missed the ack is recognised and stored once, also after
// a restart, and also by another input, if both inputs give the chunk the same tag: within an hour
// or the last 786,432 acked chunks, whichever is less, which is 3.9 s at 200,000 acks a second.
// Stats says how far back that reaches at present; what comes again after that is stored again. A
// chunk with an id of Spillway's own is recognised wherever it comes from. With any other id it
// must come from the same address, on another connection than the one on which it was first
// received.
//
// What an output forward:// sends to another collector has such an id, and the same id whenever it
// is sent again. So the last collector writes each event once and in order, whichever collector is
// killed. With several hosts, what was in flight to a host that fails may be on two of them.
//
// Events are accounted for: see Stats.
//
// A file output writes each event once, across kill -9 as well, unless others write, rotate or
// replace its files at that moment, or the disk fails to sync them. Then an event may be in the
// file twice; bytes of others are never harmed. The output stdout: is at least once.
//
// Outputs see chunks in the order stored; one connection's chunks are stored in
// the order sent.
//
// When the journal is full, or its disk fails, no event is acked and then dropped: inputs stop
// reading, and go on when there is room.
//
// # Not promised
//
// An event whose sender asked for no ack is lost with the process if it was not read yet, and with
// the power if it was not synced yet (some 20 ms). An output that is added later gets only what the
// slowest of the others has not had.
package collector
