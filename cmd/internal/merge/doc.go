// SPDX-License-Identifier: Apache-2.0

// Package merge puts the JSON lines of many files together in the order of their times.
//
//	files ──► line and its time ──► heap by (time, file) ──► heap of --slack ──► writer
//
// Each file is read forward once, and of a line only the time is decoded: the line itself is
// written byte for byte as it came. Lines of the same time keep the order of the files, and inside
// a file that of its lines, so that the result is what a stable sort of all the files gives.
//
// Memory is a budget that the files share. Plain files are not held open: each part is read with an
// open of its own. Compressed files keep a decoder while there are few of them; more are unpacked
// one after another into one temporary file, which has no name while it is read where the system
// allows that.
//
// What is assumed: the times inside a file ascend, but for a disorder of at most Slack. A line that
// comes later than that is still written, in the place where it was found, and counted. A line
// without a time that can be read is told with its file and number and left out.
package merge
