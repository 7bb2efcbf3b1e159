// SPDX-License-Identifier: Apache-2.0

// Package rig is what the tests that need more than the standard library or more than one process
// stand on: it builds the real binary, starts, kills and stops it, sends to it, reads what it
// wrote, and waits. The tests are in folders by subject: collector, kill (the collector again),
// logger, clients, kafka, syslog, golden (data of earlier code) and docs.
//
// The binary is built once a package, and linked once for all. A test starts it with
// [StartCollector] and talks to its sockets with bytes that this package writes itself, so that a
// mistake of package forward cannot agree with itself here. A [Lane] sends chunk by chunk, a
// [Sender] until it is stopped, whatever becomes of its connections; [WaitLines] and [WantNames]
// look at what came out. A logger has its folders in a [Home], [StartChild] starts a process that
// logs and may be killed, and a [Ledger] has what each sent and what arrived.
//
// What a test cannot do without (a Python, a JDK, root for a small tmpfs) it asks for with
// [needs.Have]: where it is missing the test fails in CI and is skipped elsewhere, with the same
// sentence.
//
// The real clients are those of the table in package clients.
//
// Environment:
//
//	SPILLWAY_LONG      "true" chooses the long version of each test, in parentheses here
//	SPILLWAY_KILLS     kills of each kill test; 10 (50)
//	SPILLWAY_EVENTS    events of each real client in one of its runs, a tenth in the others; 20,000 (100,000)
//	SPILLWAY_SOAK      how long the soak runs; 8s (20s)
//	SPILLWAY_RACE      "true" builds the binary with the race detector, whether the tests are or not: they read what the clients sent many times as fast without
//	SPILLWAY_SEED      the seed of random moments and contents; printed by each test that has one
//	SPILLWAY_FIGURES   file to append measured figures to; "go test" hides the log of a test that passed
//
// Package conformance, beside those above, tries the rules of the Forward protocol at any server
// and client; docs/conformance.md describes it. Package oracle holds other implementations of
// MessagePack against package msgpack.
package rig
