// SPDX-License-Identifier: Apache-2.0

// Package processes is the experiment of Chienomi's article: many processes write one log, each
// line at once, and the way in which they do decides how long that takes.
//
//	Run ──► starts the processes of a way, at once ──► Write, in each of them
//	    ◄── the last has ended: the time
//	    ──► reads all that was written, and counts what is missing, torn, out of order
//
// # How it is organised
//
//	ways.go     what a process does for its lines, a function a way
//	run.go      starts and times the processes, round by round, each way in turn
//	server.go   the server, for the ways that need one
//	check.go    reads what was written
//	report.go   the table, JSON, the chart
package processes
