// SPDX-License-Identifier: Apache-2.0

// Package bench compares the logger with others. It is a module of its own, so that a program that
// imports the logger does not get their requirements.
//
// One command each, from the root of the workspace:
//
//	go test -bench . ./bench                ten fields and one, into nothing and into a file; slog's front end; Post beside other Forward clients
//	go test -bench Steps ./bench            what each step of daichirata's client gains: synchronous, asynchronous, pooled, one wake-up
//	go run ./bench/lines                    100,000 lines of 1,000 bytes: one goroutine, 20 with a logger each, 20 on one logger;
//	                                        banaconda's minimum, maximum and average of a goroutine, blocking and not
//	go run ./bench/latency                  how long a call takes at 100,000 calls a second, whatever the destination does
//	go run ./bench/cpu                      CPU of the whole client per event, shipping included
//
// All run on one machine at one time, and every figure they print comes from that run. Machines
// differ, and so do minutes: compare figures of one run with each other, not with those of another.
// The programs take the contenders of a table in turn, round by round, and print medians.
//
// # The contenders
//
// Local loggers: phuslu/log, rs/zerolog, uber-go/zap, log/slog and sirupsen/logrus, each writing
// JSON, each as its documentation sets it up; where a logger has an asynchronous writer, that too.
// Forward clients: fluent/fluent-logger-golang and IBM/fluent-forward-go. The clients of
// daichirata, lestrrat and k0kubun, and banaconda's nb-logger, which others have compared, are not
// in the Go module proxy any more.
//
// # What is not the same
//
// Spillway's calls survive the death of the process, the others' either wait for a write or are
// lost with it. Spillway's time includes its ring in shared memory; the mover runs beside, on
// another core if there is one. When the mover cannot keep up the ring fills, and then a call waits
// (the benchmarks set Block), so that nothing is dropped and the figures include it: over a long
// run they are the slower of calls and mover.
package bench
