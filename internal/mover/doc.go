// SPDX-License-Identifier: Apache-2.0

// Package mover carries events from a ring to a destination. Append is one copy into the ring; a
// goroutine, the mover, does the rest: it cuts windows from the ring, makes chunks of them, hands
// these to the destination, and when that takes nothing, to a journal on disk.
//
// # Nouns
//
//	payload    what is appended: the tag's length as a uvarint, the tag, a record (one MessagePack map)
//	window     what is cut from a ring at once (package window), up to BatchBytes
//	chunk      what a window has of one tag, or with Config.Ordered a run of it, under a random id and a mark in the ring
//	flight     a chunk from the cut to what becomes of it
//	spill      a journal of chunks in Config.Dir (package spill); a backlog is one as the loop ships it
//	phase      how far the life of a Mover has come (phase.go)
//	action       what becomes of the next records of the ring: they are shipped, spilled, dropped, or wait (action.go)
//	source     a ring that is read: one of this process, or an adopted one
//
// # The way of an event
//
//	Append ──► ring ──► window ──► chunks, each with its mark ──► Destination.Submit ──► done ──► mark cleared, memory free
//	                                 │                                 ▲
//	                                 └──► journal, flushed, mark cleared ──► read again
//
// A chunk that goes to the spill keeps its mark until the journal has handed it to the kernel; who
// adopts both drops the chunks whose ids the spill has.
//
// # Who does what
//
//	Append, Flush, Close, Stats of any goroutine
//	   │               │ post
//	   ▼               ▼
//	 rings ◄───────── loop ──► legacy   what dead processes left: a queue, shipped first
//	                   ├─────► spiller  what the destination cannot have; its shelf is on the disk's goroutine
//	                   ├─────► packer   windows, made flights
//	                   └─────► air      what the destination has ──► Submit … done
//	 closer: the steps of Close, and the end of the loop's goroutine
//
// All of them stand on one ground: the configuration, the phase, the mailbox, the disk's goroutine,
// the rings of this process, the accounts.
//
// # Order
//
// One source is shipped at a time, wholly before the next: what dead processes left, oldest first,
// each in the order marked chunks, spill, chunks on their way to the spill, rest of the ring; then
// the own spill; then the own ring. What is spilled of an adopted ring into the own spill, because
// nothing is delivered, is shipped before the rest of that ring. While the spill holds something
// new windows go behind it. So events of one goroutine arrive in order under one tag, and at an
// ordered destination whatever their tags; at others those of different tags may pass each other
// within a window.
//
// A destination without states that has taken nothing for 5 s gets the next source's chunks too: it
// may have one that its server refuses, and shows that only by taking others. A host gets them in
// order all the same.
//
// # Who waits for what
//
// The mover sleeps in the ring (ring.Sleep) until the first append wakes it. It gathers then until
// BatchBytes or FlushInterval have passed, unless somebody waits: Flush, Close, WaitDelivered.
// While records come it looks by itself, every 4 to 100 ms, so that appenders need not wake it, and
// sleeps again after a second without any. Appenders pay one atomic load for that. It never waits
// for a disk: a second goroutine, that lives while it has something to do, opens, writes, syncs,
// reads and removes. Of those who wait for room in the ring (Block, keep) each takes the ring's
// channel before it tries, so none misses it. Waiters of WaitDelivered are answered many at a time,
// when the oldest window that is not done has passed them.
//
// # When there is no room
//
// The ring is full: with Dir, windows go to the spill when half the ring is used and the
// destination can have no more. MaxDisk is met, or the disk is full, or hangs: DropNewest refuses,
// Block waits, DropOldest drops windows from the ring's old end that are in nobody's hands (what
// the spill holds stays; it is the oldest, but on disk). The first goes when events and their heads
// fill three quarters of the ring or more; where memory was used up, and it has one to three
// segments, half to two thirds: a segment that was begun counts whole. Before DropNewest refuses, a
// call gives its processor away once, unless neither destination nor spill takes anything: often
// the mover has none. While the spill has room the reason is that the disk is slow, not that it is
// full. Each loss is counted by reason, in the ring's header too, and told by one summary event as
// soon as there is room; who adopts the ring tells what its owner could not.
//
// Where the file system of the ring has no more memory all that it holds may be with a destination
// that does not answer. These chunks go to a spill as well, one that successors read before all
// else of this process, and the ring is free; not so where the destination has states (relief.go).
// Such a spill takes what MaxDisk leaves.
//
// # When the disk is bad
//
// A chunk that the spill did not take stays in memory under its mark, and goes to the destination
// when that has all that is older. A disk that hangs, or fails to read what is older, is waited for
// 30 s; then what is in memory goes past it, with what the disk's goroutine was given (spiller.go,
// handover.go). A disk that fails for as long is a full one: the overflow policy decides. What was
// given to it may be in the spill later; its entry is known then, and is not delivered again. A
// spill that somebody removed is given up, what was in it counted as lost and told once, and the
// next window begins another.
//
// # Promises
//
//   - What Append accepted is delivered, handed over, dropped with its count, lost with its count,
//     or held; see Stats.
//   - With shared memory it outlives the process; with Dir what is in the spill does. Nothing is
//     delivered twice but under the same id with the same bytes.
//   - Append waits only if told to; Flush and Close return soon after their context is done,
//     whatever destination and disk do. Goroutines that cannot be ended are named in the error.
//
// Not promised: order between what is on a disk that hangs or fails, and what is younger; that a
// chunk which such a disk was given and the destination got does not come again, under its id, if
// the process is killed then; that a spill outlives a power cut (the journal syncs within a second,
// but nobody waits for that); order between tags, unless Config.Ordered; MaxDisk to the byte where
// several spills share one Dir (package spill says how far); that nothing comes twice, under its
// id, where a successor was killed while it moved what it had adopted to its own spill, and two
// successors then share what it left.
package mover
