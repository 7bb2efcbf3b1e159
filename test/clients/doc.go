// SPDX-License-Identifier: Apache-2.0

// Package clients runs the clients of the ecosystem: for each a small program in its own language that sends the events of an
// [Order] with it. The tests that start them against the real collector are in package test, one folder up.
//
// What each client has; all of it is tested, and what is not in a client's row it does not have:
//
//	client                        modes                         acks  gzip  TLS  shared key  users  nanoseconds  unix
//	Python fluent-logger          message                        -     -     -       -        -        yes       yes
//	Node fluent-logger            message, packed                yes   yes   yes     yes      yes      yes       yes
//	Node @fluent-org/logger       message, forward, packed       yes   yes   yes     yes      yes      yes       yes
//	Java fluency                  packed                         yes   -     yes     -        -        yes       -
//	Java org.fluentd fluent-logger  message                      -     -     -       -        -        -         -
//	Go fluent-logger-golang       message                        yes   -     yes     -        -        yes       yes
//	Go IBM/fluent-forward-go      message, forward, packed       yes   yes   yes     yes      -        yes       yes
//
// The official Go client is tested in package test itself. IBM's cannot be in one binary with it: both register the
// same extension of MessagePack.
//
// # Programs
//
// A program reads its order, one line of JSON, from standard input. Event n of an order has the time, the tag and the
// record that [Order.Event] says. It writes the numbers of the events that it takes for stored to standard output, one a
// line: with acks those that were acked, else nothing. It ends with 0 when all are sent, and with acks all acked.
//
// # Installation
//
// [Client.Command] installs what a program needs at pinned versions into a folder of the user's cache, where later runs
// find it. The name of the folder has a hash of the files that say what to install.
package clients
