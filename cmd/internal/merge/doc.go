// SPDX-License-Identifier: Apache-2.0

// Package merge puts the lines of many files together in the order of their times.
//
//	files ──► line and its time ──► heap by (time, file) ──► heap of --slack ──► writer
//	              │                          │                     │
//	              └ unpacked ──┐   ┌── runs, when there are        └── runs, when memory is full
//	                           ▼   ▼   more than fit
//	                      temporary file
//
// Each file is read forward once, and of a line only the time is decoded: the line itself is
// written byte for byte as it came. Lines of the same time keep the order of the files, and inside
// a file that of its lines, so that the result is what a stable sort of all the files gives. A
// line of text or logfmt without a time has that of the line before it, and so stays behind it.
//
// Memory is a budget: half of it are buffers of files, a quarter what these have grown by for long
// lines, a quarter lines that wait. Where more files are than have buffers, runs are made of as
// many as have, until few are left. A long line for which there is no room is read again when it is
// written. Lines that wait become runs.
//
// Plain files are not held open beyond some 200: each part is read with an open of its own.
// Compressed files keep a decoder while there are few of them; more are unpacked one after another.
// The temporary file has no name while it is read, where the system allows that.
//
// What a directory holds, Options.Dir knows. Its events come in any order and are sorted into a run
// first.
//
// With Follow plain files are read on as they grow, see follow.go.
//
// What is assumed: the times inside a file ascend, but for a disorder of at most Slack. A line that
// comes later than that is still written, in the place where it was found, and counted. A line of
// JSON without a time that can be read is told with its file and number and left out.
package merge
