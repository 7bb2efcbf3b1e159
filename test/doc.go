// SPDX-License-Identifier: Apache-2.0

// Package test holds the tests that need more than the standard library or more than one process:
// the real binary with real clients, kills, full disks and hostile peers.
//
// The binary is built once a run. A test starts it with [startCollector] and talks to its sockets
// with bytes that this package writes itself, so that a mistake of package forward cannot agree
// with itself here.
//
// What a test cannot do without (a Python, a JDK, root for a small tmpfs) it asks for with
// [needs.Have]: where it is missing the test fails in CI and is skipped elsewhere, with the same
// sentence.
//
// The real clients are those of the table in package clients, below this one.
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
// Package conformance, below this one, tries the rules of the Forward protocol at any server and
// client; docs/conformance.md describes it. Package oracle holds other implementations of
// MessagePack against package msgpack.
package test
