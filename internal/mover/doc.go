// SPDX-License-Identifier: Apache-2.0

// Package mover carries events from a ring to a destination. Append is one copy into the ring; a
// goroutine, the mover, does the rest: it cuts windows from the ring, makes chunks of them, hands
// these to the destination, and when that takes nothing, to a journal on disk.
//
// # Nouns
//
//	payload    what is appended: the tag's length as a uvarint, the tag, a record (one MessagePack map)
//	feed       a ring that is read: one of this process, or an adopted one
//	shipper    what chunks are taken from: a feed, a spill, chunks that were marked
//	window     what is cut from a ring at once (package window), up to BatchBytes
//	span       a window that was cut, as long as something of it is undone
//	chunk      what a window has of one tag, or with Config.Ordered a run of it, under a random id and a mark in the ring
//	flight     a chunk from the cut to what becomes of it
//	delivery   the flights that the destination has
//	spill      a journal of chunks in Config.Dir (package spill); a backlog is one as the loop ships it
//	entry      a chunk in a spill, as its backlog knows it
//	shelf      the spills as the disk's goroutine has them
//	stuck      of a flight: it was to be spilled, and the spill has no room for it or its disk hangs
//	aside      of a flight: the destination has it, and a spill of its own as well in place of the ring
//	legacy     what dead processes left: rings, spills, and the chunks that they had cut
//	state      what a destination wants stored with a chunk, to go on from there after a crash
//	origin     the processes whose chunks one state covers: all, or one
//	core       what all parts of a Mover share
//	phase      how far the life of a Mover has come (phase.go)
//	action     what becomes of the next records of the ring: they are shipped, spilled, dropped, or wait (action.go)
//
// # The way of an event
//
//	Append ──► ring ──► window ──► chunks, each with its mark ──► Destination.Submit ──► done ──► mark cleared, memory free
//	                                 │                                 ▲
//	                                 └──► journal, flushed, mark cleared ──► read again
//
// A chunk that goes to the spill keeps its mark until the kernel has it. A successor that adopts
// ring and spill skips marked chunks that are already in the spill.
//
// # The parts
//
//	Append, Flush, Close, Stats of any goroutine
//	   │               │ post
//	   ▼               ▼
//	 rings ◄───────── loop ──► legacy   what dead processes left: a queue, shipped first
//	                   ├─────► spiller  what the destination cannot have; its shelf is on the disk's goroutine
//	                   ├─────► packer   windows, made flights
//	                   └─────► delivery what the destination has ──► Submit … done
//	 closer: the steps of Close, and the end of the loop's goroutine
//
// All of them share one core: the configuration, the phase, the mailbox, the disk's goroutine,
// the rings of this process, the accounts.
//
// # Order
//
// One shipper is emptied at a time, wholly before the next: what dead processes left, oldest first,
// each in the order marked chunks, spill, chunks on their way to the spill, rest of the ring; then
// the own spill; then the own ring. While the destination takes nothing, windows of an adopted ring
// may be moved to the own spill; they are then shipped before the rest of that ring. (Not so for
// files of each process, whose lines have no ids: legacy.go.) The own ring waits while the own
// spill holds something. So events of one goroutine arrive in order under one tag, and at an
// ordered destination whatever their tags; at others those of different tags may pass each other
// within a window.
//
// A destination without states that has taken nothing for 5 s gets the next shipper's chunks too:
// its server may refuse one without a word, which shows only when it takes others. A host gets them
// in order all the same.
//
// # What waits for what
//
// The mover sleeps in the ring (ring.Sleep) until the first append wakes it. It gathers then until
// BatchBytes or FlushInterval have passed, unless a call waits: Flush, Close, WaitDelivered.
// While records come it looks by itself, every 4 to 100 ms, so that appenders need not wake it, and
// sleeps again after a second without any. Appenders pay one atomic load for that. It never waits
// for a disk: a second goroutine, which runs while it has something to do, opens, writes, syncs,
// reads and removes. A call that waits for room in the ring (Block, keep) takes the ring's channel
// before it tries, so it misses no room that comes in between. Calls with WaitDelivered are
// answered many at a time, when all windows up to theirs are done.
//
// # When there is no room
//
// The ring is full: with Dir, windows go to the spill when half the ring is used and the
// destination can have no more. MaxDisk is met, or the disk is full, or hangs: DropNewest refuses,
// Block waits, DropOldest drops the oldest windows that are with neither the destination nor the
// disk. (What the spill holds is older still, and stays.) The first window is dropped when events
// and their heads fill three quarters of the ring or more. A segment counts whole once it is begun:
// where memory ran short and the ring has only one to three segments, the first is dropped at half
// to two thirds. Before DropNewest refuses an event the call gives its processor away once, since
// the mover often has none, unless neither destination nor spill takes anything. While the spill
// has room the reason is that the disk is slow, not that it is full. Each loss is counted by
// reason, in the ring's header too, and told by one summary event as soon as there is room; a
// process that adopts the ring tells what its owner could not.
//
// When the ring's file system has no more memory, all that the ring holds may be with a destination
// that does not answer. Those chunks are written to a spill as well, which successors read before
// anything else of this process, and the ring is free again; not so where the destination has
// states (relief.go). Such a spill takes what MaxDisk leaves.
//
// # When the disk is bad
//
// A chunk that the spill did not take stays in memory under its mark, and goes to the destination
// when that has all that is older. A disk that hangs, or fails to read what is older, is waited for
// 30 s; then what is in memory goes past it, with what the disk's goroutine was given (spiller.go,
// spilljob.go). A disk that fails for as long is a full one: the overflow policy decides. What was
// given to it may be in the spill later; its entry is known then, and is not delivered again. A
// spill whose folder was removed is given up: what was in it is counted as lost and told once, and
// the next window begins another.
//
// # Promises
//
//   - What Append accepted is delivered, handed over, dead-lettered, dropped with its count, lost
//     with its count, or held; see Stats.
//   - With shared memory it outlives the process; with Dir what is in the spill does. Nothing is
//     delivered twice but under the same id with the same bytes.
//   - Append waits only if told to; Flush and Close return soon after their context is done,
//     whatever destination and disk do. Goroutines that cannot be ended are named in the error.
//
// Not promised: order between what is on a disk that hangs or fails, and what is younger; that a
// chunk which such a disk was given and the destination got does not come again, under its id, if
// the process is killed then, or if Close ends without waiting for that disk; that one which it was
// given and which was then dropped for newer ones does not come, though it is counted as dropped,
// if the disk gets well while the process ends; that a spill outlives a power cut (the journal
// syncs within a second, but no call waits for that); order between tags, unless Config.Ordered;
// MaxDisk to the byte where several spills share one Dir (package spill says how far); that nothing
// comes twice, under its id, where a successor was killed while it moved what it had adopted to its
// own spill, and two successors then share what it left.
package mover
