// SPDX-License-Identifier: Apache-2.0

// Package conformance holds the tests of the Forward protocol for any implementation of it, rule by
// rule of docs/forward.md. It knows only what can be seen from outside: bytes on sockets, and the
// lines that a server writes. Its messages are written by hand, and read by a reader of its own:
// nothing of package forward, which is among what it tests, is in it. docs/conformance.md says how
// to use it.
//
//	go test ./test/conformance                                             this repository's server and clients
//	go test ./test/conformance -addr 127.0.0.1:24224 -out events.jsonl      a server that runs, and the file that it writes
//	go test ./test/conformance -client 'mycat --host {host} --port {port}'  a client
//
// # Words
//
//   - rule: a number of docs/forward.md, with what it asks of a server and what of a client.
//   - subject: what is tested: a server, or a client.
//   - case: one thing done to the subject, and what must come of it. A rule has many.
//   - mood: what the suite's own server does to a client: how it greets, how it acks.
//   - fence: an event with an id, sent behind a case. Its ack says that the case's acks are all
//     there; its line, that the case's lines are.
//
// # States
//
// A rule is one of
//
//	pass             each case was seen, and came out as it must
//	fail             at least one did not
//	not observable   none failed, but at least one could not be seen, and the report says which and why: without -out, for instance, nobody
//	                 knows which events a server took
//
// and never passes by what was not looked at. What no one can see from outside, that digests are
// compared in constant time for instance, is listed with the Go test of package forward that holds
// it, and such a test must exist for each rule. For this repository's own server and clients, "not
// observable" fails.
package conformance
