// SPDX-License-Identifier: Apache-2.0

// Package load sends events to any Forward server at a given rate, and tells what became of them
// and what they cost the server.
//
//	        pace: how many messages are due            unacked: what waits for an ack
//	                 │                                        ▲            │
//	template ──► block: patched in place ──► write ──► server ──► acks ──► histogram
//	  once        times, numbers, ids     many messages                     of latencies
//
// A [Run] is one offered rate in one shape; a [Sweep] is several, and a [Report] of them is written
// as a table, as JSON or as a chart.
//
// # What is sent
//
// Messages are encoded once. What differs from one to the next has a fixed width and is written
// over in place: the time of each event, its number ("seq", a uint64, 0 for the first of the run,
// no number twice), and the id of a message that wants an ack, 128 random bits. So a core offers
// several million events a second. A number may be missing from what arrives only if the run says
// that something went wrong.
//
// Compressed entries are the exception: compressing costs far more than anything else here, so
// unless [Options.Fresh] is set some messages are compressed beforehand and sent again and again,
// each time under another id; their numbers repeat.
//
// # What is measured
//
// Time is cut into ticks of a millisecond. With each tick as many messages become due as the rate
// says, whether or not earlier ones could be sent: the server does not slow the clock down. The
// latency of a message is from the tick at which it was due until its ack was read; so what had to
// wait because the server was slow counts with all of its waiting (no coordinated omission), as
// does what the sender itself was late. Without a rate there is no schedule, and the latency is
// from the moment of the write.
//
// What is sent in the warm-up is in no rate, and an ack that comes in it in no latency. What is
// still behind when it ends is: a server that cannot keep up begins to be measured with a backlog.
//
// Without acks "sent" means taken by the kernel. At the end each connection is shut down for
// writing, and the run waits until the server closes it, which servers do when they have read
// everything; the time that takes counts, so a socket's buffer hides nothing. Of a server that does
// not close in time the result says so. It is never a promise that the events were stored; only
// acks are.
//
// A run that sent, or got acked, less than 99 % of what was offered did not keep up, and the result
// says so.
//
// CPU and memory of the server are those of its process, as /proc has them on Linux; elsewhere they
// are not measured.
package load
