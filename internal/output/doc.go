// SPDX-License-Identifier: Apache-2.0

// Package output is where the chunks of a logger or the collector go: to Forward servers, files,
// streams, or a function. An [Output] takes chunks in the caller's order, never lets the caller
// wait, and says of each of them, once, what became of it: delivered, taken by the error handler,
// or given up by Close.
//
//	Submit ──► waiting ──► host a ──► forward.Client ──► a server, which acks      done(Result{})
//	              ▲  │ ──► host b ──► …
//	   fail-over  │  │
//	              └──┼──── what a host did not ack in time
//	                 └───► error handler, while the breaker is open                done(Result{HandedOver: true})
//
// # Hosts
//
// A chunk goes to the next host, in turns, that works and has room in its window, so order is kept
// for each host and not between them. A host works when there is a connection to it and it has not
// stalled. When the connection breaks, chunks that did not leave in one piece go elsewhere at once:
// the server cannot have them. Those that did belong to that host, which gets them again, in order,
// with the same id, on a fresh connection; so it can tell a repeat. They go elsewhere only when it
// has acked nothing for FailoverAfter, and are then MaybeRepeated, unless that host is the one that
// acks them in the end.
//
// A host that has chunks and acks nothing for FailoverAfter has stalled. It gets nothing new; when
// all its chunks have gone elsewhere, its connection is given up; on the next one it gets one
// chunk, and more when that is acked. With nowhere else to go, chunks stay until AckTimeout ends
// the connection. Attempts to connect, with pauses that grow while nothing is acked, go on as long
// as there is something to send or the breaker is not closed.
//
// # Files and streams
//
//	Submit ──► queue ──► writer ──► lines ──► file (package files) or stream       done(Result{State})
//	             └─────► error handler, while the breaker is open                  done(Result{HandedOver: true})
//
// One goroutine, the writer, renders chunks as lines of JSON or text (package lines) and hands them
// to the kernel, those of many small chunks in one write; done comes after the write, in order,
// with the last of them the state that says how far the file goes. After an error (a full disk, a
// directory in the way, a pipe that nobody reads) it goes on at the next byte, after a pause; the
// first of several errors in a row is reported. A writer that hangs with the disk keeps nobody from
// submitting; Close leaves it behind by its ctx, names it, and from then on it touches no chunk and
// calls no function. What an output to files wrote before the process was killed is found by its
// successor (a Resumer), and not written again. A stream is at least once.
//
// # The breaker and the handler
//
// Failures (an attempt, a connection, a stall) are counted until something is acked. Trip.Failures
// of them, while no host works, open the breaker, and a round of offers begins: the handler is
// given each chunk that is waiting, once, and each that comes. The next attempt makes the breaker
// half-open: offers pause and one chunk, the next that there is, goes to the server. If it is
// acked, the breaker closes, else it opens again, and what the handler has refused is offered
// again. A chunk is with a server or with the handler, never with both, except those that are
// MaybeRepeated.
//
// # Promises
//
// done is called once for each chunk, and after it nobody touches the chunk's bytes: an error
// handler has a copy. Submit does nothing slow. Close returns by its ctx, whatever servers, names,
// handlers and listeners do; it names what it left behind. After a Close without an error no
// goroutine is left.
//
// A chunk that the servers refuse, each in its way, while they ack others, is refused for good
// (doubt.go). It may have been stored, and up to three others pass it before that is sure.
//
// # Not promised
//
// A chunk that no server takes is sent for ever where no other is acked in between, unless the
// handler takes it. Without acks delivered means written to the kernel: what was written between a
// server's end and the moment when that was seen is lost. A connection whose Write ignores Close
// keeps its chunk: done is not called before it lets go.
package output
