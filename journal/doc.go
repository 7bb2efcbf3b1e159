// SPDX-License-Identifier: Apache-2.0

// Package journal is a log of records on disk: append, sync in groups, follow with durable cursors.
// It does not know what a record means.
//
// A record is bytes, appended whole and read whole. A [Position] is the end of a record; positions
// grow and are never used twice. Records live in segments, files of one size that are prepared
// ahead and used again once every cursor has passed them. A cursor is a name, a position and some
// bytes of its reader's, made durable together. Records are written in batches, many in one write,
// and synced in groups, one sync for all waiting callers.
//
// # Promises
//
//   - When [Journal.Flush] returned nil for a record, it outlives the process, whatever kills it.
//
//   - When [Journal.Sync] returned nil for a record, it outlives a power cut. After one, everything
//     up to the last Sync is read, and any whole record after it.
//
//   - A [Reader] sees only what is durable, in the order of positions, each record exactly as
//     appended at that position, never anything else: every record is checked against its place and
//     against the one use of its segment.
//
//   - After a crash a cursor is where it was committed, with its state; not before the last Commit
//     that returned.
//
//   - Synced bytes are never overwritten in their only copy. A disk that garbles every page that is
//     being written when the power goes still takes nothing that was synced.
//
//   - A record that a cursor has yet to read and that no file holds any more is reported and
//     counted. So is a file that is removed while it is written to, and neither [Journal.Sync] nor
//     [Journal.Check] returns nil then.
//
//   - What cannot be read is copied or moved into the directory quarantine, reported to
//     Options.Report once, and never deleted. Everything else is read. A device that fails is tried
//     for a minute first.
//
//   - A failed write or sync is returned to all waiting callers, and stays until the journal has
//     written everything again that may have been lost by it. The journal tries that by itself.
//     Nothing that was appended is given up, and the same positions become durable then. So an
//     error of Flush or Sync means "not known to be stored", not "not stored".
//
//   - The directory's identity stays the same for as long as its file can be read.
//
// Not promised: anything about records that were only appended (though they are synced within a
// second, within 20 ms when a reader waits); that a record whose Append returned but not its Flush
// survives the process; that each name in the directory is kept if another program writes there.
//
// Assumed of kernel and disk: what Datasync returned nil for is on the disk (a disk that lies about
// flushes breaks every promise); a page that is not being written keeps its bytes; rename is
// atomic; flock is seen by all processes that share the directory (it is not across NFS clients);
// the clock need not be right.
//
// # The directory
//
//	lock                       flock; holds the process number as text
//	seg-<16 hex digits>.log    a segment; the digits are its number
//	cursor-<name>              a cursor; bytes of the name other than letters, digits and "._-" as %XX
//	identity                   what the directory is called by others
//	seg-new                    a segment that is being prepared
//	reserve                    room for cursors on a full disk; only with Options.Reserve
//	rescue-<16 hex digits>     pages of that segment while recovery writes them again
//	quarantine/                what could not be read
//
// # A segment
//
//	offset 0            4096          8192          12288                                     size
//	┌───────────────────┬─────────────┬─────────────┬────────┬────────┬─────┬────────┬────────┐
//	│ header, zeros     │ tail slot 0 │ tail slot 1 │ record │ record │ pad │ record │ …      │
//	└───────────────────┴─────────────┴─────────────┴────────┴────────┴─────┴────────┴────────┘
//
// All integers are little endian; all checksums are CRC-32C.
//
//	header   0        8      10     12     16     24       40     48     56       64      68
//	         ┌────────┬──────┬──────┬──────┬──────┬────────┬──────┬──────┬────────┬───────┐
//	         │SPILLSEG│vers 1│ kind │ pad  │number│ nonce  │ size │ prev │ synced │ check │
//	         └────────┴──────┴──────┴──────┴──────┴────────┴──────┴──────┴────────┴───────┘
//
// kind is 1 for a segment that holds records, 2 for one that holds none: prepared, or freed. The
// nonce is 16 random bytes, new each time the file is taken into use. prev is the position where
// the records before this segment's first end: whatever earlier segments hold beyond it does not
// count. synced is a position that was durable when the segment was taken into use; recovery need
// not doubt anything before it. pad is one more than the bytes of padding that prev counts, 0 where
// that is not known, as in files of earlier versions. check is over bytes 0..63. A header that was
// destroyed is made again from a tail slot, which has the nonce too.
//
//	record   0        4      8         12     16              16+length
//	         ┌────────┬──────┬─────────┬──────┬───────────────┬─────────┐
//	         │ length │ kind │ payload │header│ payload       │ zeros   │  to a multiple of 8
//	         │        │      │ check   │check │               │         │
//	         └────────┴──────┴─────────┴──────┴───────────────┴─────────┘
//
//	payload check = CRC(payload, nonce[8:16], place)      place = number<<32 | offset of the record, 8 bytes
//	header check  = CRC(nonce[0:8], place, the first 12 bytes of the header)
//
// kind is 0x52454331 for a record and 0x50414431 for a pad, whose payload is zeros and is not
// checked. A header never lies across two pages: where fewer than 16 bytes are left, the next one
// is at the start of the next page. Because the header check depends on the nonce and the place,
// neither the file's former content, nor log text, nor a copy of a segment inside a record is ever
// taken for a record, and a scan past damage rejects each place by looking at 16 bytes.
//
//	tail     0        8       24         32       36      40    44      48
//	         ┌────────┬───────┬──────────┬────────┬───────┬─────┬───────┬─────────────────────┐
//	         │SPILLTAI│ nonce │ position │ length │ flags │  0  │ check │ bytes of the page   │
//	         └────────┴───────┴──────────┴────────┴───────┴─────┴───────┴─────────────────────┘
//
// A tail is a copy of the last page that was synced, from its start to position. The page may be
// written again with records behind them; the copy is put back if that goes wrong. Syncs use the
// two slots by turns. A sync of 16 KiB or more pads its last page instead. Flag 1 says that
// position is the end, everything before it durable: a clean Close. check is over bytes 0..43 and
// 48..4095.
//
// # A cursor
//
// A file of two slots of equal size, a multiple of 4096. Commit n writes slot n mod 2, so the last
// one stays while the next is written.
//
//	slot     0        8      12     20     28         36       40      44      48
//	         ┌────────┬──────┬──────┬──────┬──────────┬────────┬───────┬───────┬──────────────┐
//	         │SPILLCUR│vers 1│ size │commit│ position │ length │ state │ check │ state, zeros │
//	         │        │      │ of a │number│          │ of     │ check │       │              │
//	         │        │      │ slot │      │          │ state  │       │       │              │
//	         └────────┴──────┴──────┴──────┴──────────┴────────┴───────┴───────┴──────────────┘
//
// A larger state makes a larger file, written beside it and renamed.
//
// # The reserve
//
//	reserve  0        8      12     16       24      28                    Options.Reserve
//	         ┌────────┬──────┬──────┬────────┬───────┬───────────────────────────┐
//	         │SPILLRSV│vers 1│  0   │ passed │ check │ nothing                   │
//	         └────────┴──────┴──────┴────────┴───────┴───────────────────────────┘
//
// passed is a position that all cursors had passed when the last segment with records was freed.
// check is over bytes 0..23. The file's length is what is left of the reserve; the journal fills it
// up before it makes another segment. Earlier versions leave the file alone.
//
// # The identity
//
// A file that is written once, beside its name and renamed. No caller gets what it says before it
// is durable.
//
//	identity 0        8      12           28      32
//	         ┌────────┬──────┬────────────┬───────┐
//	         │SPILLIDE│vers 1│16 random   │ check │
//	         │        │      │bytes       │       │
//	         └────────┴──────┴────────────┴───────┘
//
// check is over bytes 0..27. A directory of an earlier version has none, and gets one when it is
// opened; that version leaves the file alone.
//
// # Goroutines and callers
//
//	Append          copies into the batch that fills; writes only a full one
//	Flush           one of the waiting callers writes the batch, without the lock
//	syncer          a goroutine: writes and syncs for all callers of Sync, later without one, and goes on after errors
//	allocator       a goroutine: prepares segments, recycles freed ones, meets a full disk before a write can
//	Reader          reads with pread, in blocks, on its caller's goroutine
//
// # How it is organised
//
// A [Journal] is put together of parts, each of which knows only those above it here:
//
//	part        is                                                    touched by
//	folder      the directory and the files set aside                 any part that meets damage
//	life        the lock of all below, what is wrong, what waits      all parts
//	writer      what was appended: segment in use, batches, the queue appenders; one of them, or the syncer, writes
//	syncer      groups that wait for a sync, what is written and not synced    the syncer; waiting callers join
//	reserve     room for cursors on a full disk                       the allocator; a commit, under a lock of its own
//	cursors     durable places by name, open files of readers         readers
//	spares      files prepared for use, or freed                      the allocator; an appender takes one that is ready
//	allocator   what is prepared, freed, used again, given back       the allocator; an appender asks for room
//	recovery    the reading of what was left                          Open, before anybody else
//	Journal     Append, Open, Close; with follow.go Reader and cursors
//
// Locks are taken in this order: that of a Reader, of its cursor, of the reserve, life.mu, that of
// holes. life.mu, which comments call mu, is never held over a call to the kernel but those that
// close a file, nor over Report. A commit to a cursor holds that one's lock and looks first
// whether the journal is closed. Close takes each of these locks before it lets the directory go.
//
// Not obvious:
//
//   - Batches are whole pages: the first page of one repeats what the last one of the batch before
//     began. So no write makes the kernel read first.
//   - The first write into reserved blocks makes the file system commit metadata at the next sync.
//     Small batches therefore come after zeros written ahead for many of them; an event synced
//     alone then costs one page and its copy. Segments in their second use cost nothing of the
//     kind.
//   - The segment freed last is used first: its pages are still in memory, and writing into these
//     costs a fraction of writing new ones.
//   - The syncer yields once before it takes a batch: goroutines that the last sync woke append
//     first, and groups are nearly twice as large.
//   - What Open finds in memory need not be on the disk. It is synced before any reader sees it,
//     through a copy: what is written over may be the only copy on the disk. Cursors are synced by
//     a new file.
//   - The file with the highest number is never removed, also when it is not needed: it keeps
//     numbers, and positions, from being given twice.
//   - After a failed sync the pages are written again before the next sync: the kernel may have
//     marked them clean.
package journal
