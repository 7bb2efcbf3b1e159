// SPDX-License-Identifier: Apache-2.0

// Package ring keeps records in memory that outlives the process: append without waiting, one
// merging reader, adoption of a dead owner's ring. It does not know what a record means.
//
// A ring is a piece of memory, mapped from a file on a file system in memory (or plain, where there
// is none), cut into segments. A record is bytes with a time and a key: the monotonic nanoseconds
// at which it was appended. Appenders write in lanes; an appender takes one that no other running
// goroutine has, so that no cache line goes from core to core with every call. The reader merges
// the lanes by key. It marks the records that it has handed on, and cuts the ring behind them when
// they are done. A segment is used again when all of its records are done.
//
//	appenders                 lanes (4 here)                            reader
//	─────────                 ──────────────                            ──────
//	Append ──► take a lane ─► [▒▒▒▒▒▒]─►[▒▒░   ]                ┐
//	           read the clock [▒▒▒▒▒▒]─►[▒▒▒▒▒▒]─►[░     ]      ├ by key ─► Next ─► Put(mark) ─► … ─► Clear
//	           copy, check    [▒░    ]                          │                   Cut(key)
//	           publish        (idle: holds nothing)             ┘                     │
//	                             ▲                                                    ▼
//	                             └────────────── free segments ◄───────── all records of a segment done
//
// # Promises
//
//   - When Append returned nil, the record outlives the process, whatever kills it, as long as the
//     file's memory does.
//   - Next returns records in the order of keys. If one append returned before another began, the
//     first has the lower key, also when a goroutine changes lanes. A record becomes visible late,
//     when an older one may still come, but never out of turn.
//   - Append allocates nothing and does not wait for other appenders. It makes no system call,
//     unless it is faster than the goroutine that gets memory ahead: then it asks for 64 KiB
//     itself. Before it is refused it looks again for as long as that goroutine has segments, 10 ms
//     at most. A goroutine that the scheduler takes off its core in the middle of an append keeps
//     the reader waiting, not other appenders.
//   - Adopt takes a ring only when the kernel's lock on it is free, and each ring once. It never
//     decides by process numbers.
//   - An adopted ring returns each whole record once, every byte as it was appended. A payload that
//     looks like a record is not taken for one. What is missing is counted.
//   - If the memory goes away (the file is cut, the file system cannot keep what it had
//     promised), there is an error that wraps [ErrFailed], not a crash. Next goes on with what can
//     be read; the rest is counted.
//   - What cannot be read is left as it is, and reported; never deleted.
//   - A ring takes the memory that it needs, not that of its size: 100 KiB at first, more as it
//     fills, and what was not needed for ten to twenty seconds goes back. Where there is no more, it
//     is a smaller ring: see [Ring.Size] and [Ring.Short].
//
// Not promised: anything across a restart of the machine; across the end of the container in whose
// private /dev/shm the ring lies, for others cannot reach that; that records of a live ring are
// told from bytes that a foreign writer with the user's rights puts over them (in an adopted ring
// they are). With plain memory nothing outlives the process. A child forked without exec cannot use
// its parent's ring, and one that keeps its parent's descriptors keeps the lock: the ring is held
// until it ends, not lost. flock is not seen across machines: the folder must not be on a network
// file system.
//
// Assumed: what a processor has stored to a mapping is there for the next process that maps the
// file, also when this one is killed at that moment; the clock is one for all cores and does not go
// back.
//
// # Files
//
//	<dir>/<name>.<pid>.<16 hex digits>/         made under this name and ".tmp", locked, filled, renamed; renamed back before it is removed
//	                                  owner     text: the process that made it; flock, held while a process has the ring
//	                                  ring      the memory
//
// # The memory
//
//	0          256    512        4096         8192       24576     61440     98304
//	┌──────────┬──────┬──────────┬────────────┬──────────┬─────────┬─────────┬─────────┬─────────┬───
//	│ head     │ cuts │ counters │ 64 marks   │ table    │ state 0 │ state 1 │ segment │ segment │ …
//	└──────────┴──────┴──────────┴────────────┴──────────┴─────────┴─────────┴─────────┴─────────┴───
//
// The file has all of that from the start, and holes where there is no memory yet: in states that
// are longer than a page, and in segments that are free.
//
// All integers are little endian; all checks are CRC-32C. Those of head's parts are seeded with the
// ring's id and with the place.
//
//	head     0        8      12     16     32     40     48     56        64   72      76
//	         ┌────────┬──────┬──────┬──────┬──────┬──────┬──────┬─────────┬────┬───────┐
//	         │SPILLRNG│vers 2│ 98304│ id   │ size │ unit │ max  │ born    │  0 │ check │
//	         └────────┴──────┴──────┴──────┴──────┴──────┴──────┴─────────┴────┴───────┘
//
// id is 16 random bytes; size the bytes of all segments, unit those of one: a power of two, at most
// 256 of them; max the longest payload; born the wall time at key 0.
//
//	cut      0     8       12      16           state    0          8        16      20    24
//	         ┌─────┬───────┬───────┐                     ┌──────────┬────────┬───────┬─────┬──────────
//	         │ key │ check │   1   │  ×2                 │ sequence │ length │ check │  0  │ bytes …     ×2
//	         └─────┴───────┴───────┘                     └──────────┴────────┴───────┴─────┴──────────
//
// The highest whole cut counts, and the state with the highest sequence. Each is written over the
// older of two.
//
//	mark     0       8      16     24      48      52      56     64
//	         ┌───────┬──────┬──────┬───────┬───────┬───────┬──────┐
//	         │ first │ last │ lane │ label │ check │ 1     │      │        no mark: 0 instead of check and 1
//	         └───────┴──────┴──────┴───────┴───────┴───────┴──────┘
//
//	table    0      4       8       16     24       32      36      40       44      48      56     64
//	         ┌──────┬───────┬───────┬──────┬────────┬───────┬───────┬────────┬───────┬───────┬──────┐
//	         │ RSEG │ units │ nonce │ lane │ number │ check │ check │ filled │ count │ first │ last │  a line for each segment
//	         └──────┴───────┴───────┴──────┴────────┴───────┴───────┴────────┴───────┴───────┴──────┘
//
// The nonce is 8 random bytes, new with each use. Units is more than 1 for a run of segments that
// holds a record larger than one; its line is that of its first. Filled (bytes), count (records),
// first and last key are written, with the second check, when the lane goes on to another segment.
// FREE is in place of RSEG when the segment is in use no more; the line of one that never was is
// zero, and so is its memory. Format version 1 is drawn in format1.go.
//
//	record   0        4       8       12      16    24     32        32+length
//	         ┌────────┬───────┬───────┬───────┬─────┬──────┬─────────┬─────────┐
//	         │ length │ nonce │ check │ index │ key │ time │ payload │         │  to a multiple of 8
//	         └────────┴───────┴───────┴───────┴─────┴──────┴─────────┴─────────┘
//	          └ commit word ┘                 └───── checked ────────┘
//
// The commit word, written last, has the lower half of the nonce. The check is seeded with the
// other half, the record's place in the ring and its index, its number in the segment. So neither
// what is left of a segment's earlier use, nor a payload, is taken for a record; and gaps in index
// count what is missing.
//
// # How it is organised
//
// A [Ring] is put together of parts, each of which knows only those above it here:
//
//	format.go, format1.go    what lies where, now and in the first version
//	clock.go                 keys
//	backing.go               what the file has been given of its memory
//	memory.go, fault.go      the memory that all parts share; that it may go away
//	space.go, life.go        appenders that wait for room; whether appends are taken, and what wakes the reader
//	lane.go                  taking a lane, taking all of them for ever
//	pool.go                  which segments are free, and which have memory
//	segments.go, tender.go   beginning a segment, giving it back; its memory, got ahead and given back
//	notes.go, retired.go     marks, cuts and what else lies in the head; segments read and not yet done
//	record.go, scan.go, rescue.go    reading what was left, or what can still be read
//	merge.go, reader.go      the live reader, with how it works; whatever the ring, its next record
//	ring.go, append.go, options.go   open, close; appending
//	owner.go, home_*.go, adopt_*.go, dir_*.go, kernel_*.go    folders, locks, mapping
//	inspect.go               reading without touching
//
//	part       written by
//	memory     nothing, once the ring is open; what lies in it, by those below
//	life       the reader when it goes to sleep, the appender that wakes it; rises once, at the end
//	lanes      appenders, each in the lane it has
//	segments   an appender whose lane goes on to another one, with compare-and-swap; the tender
//	space      appenders that find no room, and all that make some, under its lock
//	notes      any goroutine, under its lock
//	retired    the reader and the caller of Cut and Clear, under the lock of notes
//	reader     the reader's goroutine
//
// Locks: that of notes comes before that of space, which is a leaf, as that of lanes is. A lane's
// busy bit is a lock that is only tried; an appender that has one takes no lock but that of space,
// and that one when there is no room. A goroutine that holds the lock of notes tries a lane once,
// and leaves it alone if it is busy.
//
// Not obvious:
//
//   - The clock is read after the lane was taken, and the reader reads its clock before it looks at
//     the lanes. Only for that reason nothing older can come from a lane that the reader sees idle.
//   - The fast path looks whether the ring takes appends only when it has the lane. So a ring is
//     closed by taking all lanes and keeping them.
//   - The live reader needs no commit words: it knows from the lane's state how far it may read.
//     They are for the process that adopts the ring after a kill.
//   - A record's stores may reach memory in any order. Append has not returned before they are all
//     made, and if the process ends before that, the check fails.
//   - A lane that goes on to its next segment takes no lock either: bits of free segments are taken
//     by compare-and-swap, and all else belongs to the lane until the old segment is closed. With a
//     lock there, one appender in two hundred waited for a holder that was off its core: that was
//     the tail.
//   - Where the memory is too little for several segments a lane, lanes share them: each lane that has
//     records of the same time in a segment of its own would hold that until all of them are done.
//   - Memory is allocated without changing the file's length: in a file that another process has
//     cut there would be zeros in place of what faults.
//   - To read a hole of a tmpfs through a mapping fills it, or faults where there is no room. So
//     the adopting process asks for the end of what was written before it looks for records in a
//     segment that was in use.
//   - Lane 0 is always busy, so that the zero Hint finds its way to the slow path without being
//     asked for.
package ring
