// SPDX-License-Identifier: Apache-2.0

// Package clients runs the clients of the ecosystem: for each a small program in its own language
// that sends the events of an [Order] with it. The tests that start them against the real collector
// are beside it; so is the test of the official client of Go, which needs no program.
//
// What each client has is what is tested of it; a dash is what it does not have:
//
//	client                            modes                     acks  gzip  TLS  shared key  users  EventTime  unix
//	Python fluent-logger 0.11.1       message                   -     -     -    -           -      yes        yes
//	Node fluent-logger 3.4.1          message, packed           yes   yes   yes  yes         yes    yes        yes
//	Node @fluent-org/logger 1.0.10    message, forward, packed  yes   yes   yes  yes         yes    yes        yes
//	Java fluency-fluentd 2.7.3        packed, as str            yes   -     yes  -           -      yes        -
//	Java fluent-logger 0.3.4          message                   -     -     -    -           -      -          -
//	Go fluent-logger-golang 1.10.2    message                   yes   -     yes  -           -      yes        yes
//	Go IBM/fluent-forward-go 0.4.0    message, forward, packed  yes   yes   yes  yes         -      yes        yes
//
// TLS is tested with client certificates too, but for the official Go client, which has none.
// Python is tested with its three ways of packing (raw strings of before str8 and bin, short
// floats), with its thread, and with what it keeps while there is no server; Fluency with what it
// leaves in files for a process that comes later.
//
// # What the clients do of their own
//
// Seen here, and nothing that a server could change:
//
//	Python, Java fluent-logger   nothing tells them what was stored: what is in the sockets when the server dies is lost
//	Node fluent-logger           over TLS it loses an ack that comes before its write's callback, and then waits for its timeout: large chunks with
//	                             acks over TLS hardly get through. It throws where nobody can catch it when the connection breaks
//	                             in a write. It sends again only what its user does, with a new id; so it can be there twice
//	Node @fluent-org/logger      sends again with a new id; so an event whose ack was cut off can be there twice
//	Java fluency                 says that all is flushed while the last chunk is on its way; does not look at the server's name in TLS
//	Go fluent-logger-golang      takes no authorities but the system's
//	Go IBM/fluent-forward-go     reads salts as bin only; writes a map in another order each time that it sends a message, which is then
//	                             no resend but another one (packed messages are written once)
//
// # Programs
//
// A program reads its order, one line of JSON, from standard input. Event n of an order has the
// time, the tag and the record that [Order.Event] says. With acks it writes the number of each
// event that is acked to standard output, one a line. It ends with 0 when all are sent, and with
// acks all acked.
//
// # Installation
//
// [Client.Install] installs what a program needs at pinned versions into a folder of the user's
// cache (spillway-test, see [needs.Cache]), where later runs find it. The folder's name has a hash
// of the files that say what to install. What the installers download they keep there too, in place
// of where they otherwise would.
package clients
