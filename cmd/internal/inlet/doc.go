// SPDX-License-Identifier: Apache-2.0

// Package inlet reads lines into memory that outlives the process, so that what was read from a
// pipe is there once, whatever kills the reader: with the next reader, or in its ring.
//
// An inlet is a file on a file system in memory, mapped, that one process has at a time (flock). It
// has two areas. read(2) puts bytes straight into one of them; a line that is taken from there goes
// into a ring, and the place of the next one is noted. The ring's reader does the rest.
//
//	pipe ──read──► area ──► Next ──► ring.Append ──► Took
//	               ▲   │                 │
//	               │   └ a line's        └ its key
//	               │     beginning
//	               └── the other area, once this one is full
//
// # Why nothing is lost, and nothing comes twice
//
//   - A kill between the read and the note of its length: all bytes behind what was read are 0xff,
//     which no text in UTF-8 has. So the next reader sees how much was read. (Of a beginning of a
//     line that ends with such bytes they are lost. A whole line ends with a newline.)
//   - A kill between the append of a line and the note of it: with each line the key of its record
//     is noted, and the ring that has it. So the next reader looks into that ring: a record with a
//     higher key is that of the next line. It may have left the ring by then, but then the ring has
//     been cut behind that key. This has to be looked at before the ring is adopted ([Inlet.Last]).
//   - A kill within a note: notes are written in turns to two places, and then one word says which
//     of them counts.
//   - The beginning of a line stays. If the next reader has the same pipe, the rest of the line is
//     what it reads first. If it has another one, the beginning is a line of its own.
//
// Assumed: what a processor has stored to a mapping is there for the next process that maps the
// file, in the order of the stores; and a kill during read(2) comes after the bytes that were taken
// out of the pipe are in memory, which is so where the pages are mapped: each was written to a
// moment before.
//
// # The file
//
//	0          8      12     16        64        192       4096     4096+a    4096+2a
//	┌──────────┬──────┬──────┬─────────┬─────────┬─────────┬────────┬─────────┐
//	│ SPILLINL │vers 1│ a    │ which   │ note 0  │ note 1  │ area 0 │ area 1  │
//	└──────────┴──────┴──────┴─────────┴─────────┴─────────┴────────┴─────────┘
//
//	note     0      4       8      16   24    32     48       56      64
//	         ┌──────┬───────┬──────┬────┬─────┬──────┬────────┬───────┬──────┐
//	         │ area │ flags │ from │ to │ key │ ring │ device │ inode │ time │
//	         └──────┴───────┴──────┴────┴─────┴──────┴────────┴───────┴──────┘
//
// All integers are little endian. From and to are what was read and not taken yet, in the area; key
// and ring say where the line before it is; device and inode are those of the pipe, time is when
// was read. Flag 1: from is in the middle of a line that was too long for one piece.
package inlet
