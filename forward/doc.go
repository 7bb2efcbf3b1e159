// SPDX-License-Identifier: Apache-2.0

// Package forward speaks the Fluentd Forward protocol, versions 1 and 1.5, at both ends. Rules are
// cited by their numbers in docs/forward.md.
//
// A [Server] hands what it receives to a [Handler], as chunks: entries under one tag, with the id
// that the sender wants acked. nil from the handler means stored as promised; only then the ack
// goes out. A [GroupHandler] takes together what arrived together and says later when it is stored,
// so that one commit serves many chunks, and their acks leave in one write. An [AsyncHandler]
// finishes chunks later and in any order, while acks stay in order. [Chunk.All] iterates over a
// chunk's events, [Record.Decode] turns one into Go values, and [SenderOf] says what sent it. A
// [Client] sends chunks and waits for their acks, with several in flight, and sends again what was
// not acked, in order, on a fresh connection; [Client.Start] does the same without a waiting
// goroutine.
//
// # A chunk as it travels and as it is stored
//
//	┌────┬─────────┬────────────┬───────────────┬──────────────────────────────────────────────────────┐
//	│ 93 │ str tag │ bin header │ entries…      │ map: chunk, size, compressed, fluent_signal, spillway │
//	└────┴─────────┴────────────┴───────────────┴──────────────────────────────────────────────────────┘
//	 AppendHead                   Body            AppendTail
//
//	an entry:   92 <time> <map>         or, of version 1.5, with metadata:   92 92 <time> <map> <map>
//	a time:     d7 00 <seconds, 4 bytes> <nanoseconds, 4 bytes>   or an integer, or a float
//	an ack:     81 a3 "ack" <the id as it came, str or bin>
//
// Entries are handed on as they came, byte for byte, out of the read buffer, with four exceptions:
// compression is undone, a time of 0 becomes the time of arrival, entries without a record (nil) or
// of a wrong type are left out, and what the [Endpoint] is to add is added. Chunk.Sent has them as
// they came. The option key "spillway" ([Chunk].UniqueID) marks ids that are random and name the
// same entries for ever. A program that stores chunks may add keys of its own to the map. Entries
// that came compressed and are complete are lent in both forms: a handler that stores or relays a
// chunk writes its Body, and reads it back with an [Inflater].
//
// Messages of Message mode that ask for no ack and arrive in one read are gathered into one chunk
// for each tag. Events of one tag keep their order; those of different tags may pass each other.
//
// # Errors of peers
//
// Server.PeerError is called for each case, once a message, and [ServerStats] has a counter for
// each. What was complete before it is stored and acked.
//
//	kind                      is                                                            action
//	PeerGarbage               byte c1; more than 256 values in a row that are no message;   closed
//	                          broken JSON
//	PeerPartial               the stream ends within a message                              discarded, not acked
//	PeerTooDeep               a record nested deeper than 128                               closed; in a packed chunk: refused
//	PeerTooLong               a length or count that no message could hold                  closed; in a packed chunk: refused
//	PeerTooLarge              over MaxChunk                                                 closed, not acked (rule 30)
//	PeerInvalidMessage        an array that is no message                                   refused
//	PeerInvalidEntries        time or record of a wrong type                                left out, the rest is kept (rule 23)
//	PeerInvalidChunk          packed entries that break off, or not a single array in them  refused
//	PeerBadTag                no string, or over MaxTag                                     refused
//	                          control characters or ".." in it                              kept
//	PeerBadID                 an id over MaxID                                              refused
//	PeerUnknownCompression                                                                  refused
//	PeerCorrupt               damaged or truncated gzip or zstd; a zstd window over 8 MiB   refused
//	PeerBomb                  over MaxDecompressed                                          refused
//	PeerTooLargeEvent         an event over MaxEvent                                        set aside, or refused
//	PeerSignal                metrics or traces                                             refused
//	PeerSlowReader            leaves acks unread for WriteTimeout                           closed
//	PeerSlowSender            holds memory that others wait for, and sends next to nothing  closed
//	                          of its message for a tenth of StallTimeout
//	PeerUnstored              the handler returned an error                                 closed, not acked
//	PeerBroken                the connection broke                                          closed
//	PeerHandshakeFailed       TLS that fails, something else in place of a PING, or         closed
//	                          neither in HandshakeTimeout
//	PeerDenied                wrong key or password, unknown user or network; more than     closed
//	                          one message where keepalive is denied
//	PeerNotAccepted           too many open files, or no memory for a connection            it waits
//	PeerTooMany               idle for longest when there are more than MaxConnections, or  closed
//	                          too many open files
//	PeerOtherProtocol         begins as TLS, HTTP, SSH, syslog or other text does; more     closed
//	                          than 16 values before any message
//	PeerWithdrawn             its key, user or certificate is good no more, see Recheck      closed, what has come is acked
//
// Refused means: not handed on, not acked, the connection stays. A value that is no array is
// ignored (rule 6). nil is the heartbeat and is ignored in any number.
//
// Where the protocol is silent: an entry that is nil itself is left out like one with a nil record.
// An entry has two elements, not more. An option that is no map says nothing; of a repeated key the
// last counts; a chunk id that is neither str nor bin asks for no ack. A chunk of which nothing is
// left is acked without being handed on. A negative time is a time.
//
// # Handshake and TLS
//
// An [Endpoint] says how the connections of one listener begin, a Client's TLS and Login how its
// own do. TLS comes first, then the handshake of rules 31 to 40:
//
//	server   92 "HELO" {"nonce": 16 bytes, "auth": 16 bytes, or none where there are no users, "keepalive": bool}
//	client   96 "PING" host, salt, sha512(salt host nonce key), user or "", sha512(auth user password) or ""
//	server   95 "PONG" bool, reason, host, sha512(salt host nonce key)      digests are hexadecimal text
//
// Nothing is accepted before the PONG accepts. A PONG that refuses names the class of the error,
// in Fluentd's words, and nothing else: a wrong key, an unknown user and a wrong password take the
// same work, digests are compared in constant time, and an unknown user gets the same answer as a
// wrong password. JSON, an event, or anything else before the PING is answered with no. A PeerError
// has what the client called itself; secrets are in no error, and in none of what Login, Security
// and ClientRule print.
//
// The first [ClientRule] that fits decides (rule 39). Its Host is what the PING says, proved by the
// rule's key alone; nothing is looked up. Where a rule's network fits and no rule's host does, a
// strict server answers as it does to a wrong key, so that nobody can try out names. A server that
// has the client's own name is refused, for the digest that it proves itself with is then the one
// that it was sent; a Server gives itself another name in such a PONG.
//
// Where keepalive is denied, the server takes one message and closes when its ack is written, or at
// once if it asks for none; the Client makes a fresh connection for each chunk then. Secrets and
// certificates are exchanged by asking for them: GetSecurity and tls.Config.GetConfigForClient,
// GetLogin and GetTLS, once a connection; [Server.Recheck] asks again and ends those that would not
// be let in now. Versions before TLS 1.2 are refused, whatever the configuration says.
//
// Both handshakes together have HandshakeTimeout, at the client DialTimeout. A connection that is
// in them holds a few kilobytes (a hostile one up to 8 KiB of a PING, or 32 KiB of what package tls
// reads, which takes 64 KiB at most), and Shutdown does not wait for it. One that comes and goes
// without a byte, or after its handshake, is no error: that is how others look whether a server
// is there.
//
// # Memory
//
// An idle connection holds its socket, a goroutine and 1,400 bytes: it waits for readability first
// and takes a buffer, of 128 KiB, when there is something to read. The buffer grows when it is full
// of one message: to twice its size, or to what the message needs, by its headers and its first
// part, if that is near; never because of a claim alone. Sizes are in steps of an eighth, so a
// message of 8 MiB takes 8 or 9. A connection that has sent the beginning of a message and then
// nothing keeps 4 KiB.
//
// All buffers together, of messages, decompressed and rewritten entries, those that an
// [AsyncHandler] still has and those that are kept for their next use, stay within Server.Memory.
// Beyond it connections wait in line: small messages first, for which a quarter is kept, then those
// in the middle of a large message, then those that would begin one, of these the one whose peer,
// all its connections together, holds least; and they begin only when those in the middle will
// leave them room, going by what such messages have taken before. A message that is half read can
// always be finished, because the first in line may overdraw by what one message takes, one
// connection at a time: MaxChunk and MaxDecompressed hold whatever Memory is.
//
// While some connections wait, the server cuts those that hold memory and make no progress: those
// whose peer has sent, in a tenth of StallTimeout, less than one part in 640 of what they hold.
// Time counts only while others wait and the connection was read and found empty. While more are
// cut than complete a message after a pause, that time is shortened, down to a tenth of it, but to
// no less than three times the longest pause after which the connection has gone on. The one that
// overdraws is first, then come those of the peer that holds most. So half-sent messages, however
// many, hold up small messages for next to no time, and large ones for a second or two. A
// connection is not cut while it waits for memory itself, or while the handler has its chunk. What
// comes before a login, up to 32 KiB of a connection, counts as well.
//
// Buffers that were not used for two to four seconds go to the garbage collector. What is kept of
// the six sizes up to 128 KiB comes on top of Memory: of each as much as a quarter of it, most
// often next to nothing of all but the last one.
//
// Of JSON the value in progress counts as four times its text, for what its decoder takes and what
// it becomes; a connection that has spoken it holds up to 16 KiB more while it is idle.
//
// A connection of TLS holds 10 KiB more while it is idle, and 17 KiB beyond that once it got large
// records: package tls does not give them back. Not counted are these, 64 KiB while records are
// read, the decompressors (as many as there are cores, and no more than one for 8 MiB of Memory; up
// to 8 MiB of window each for zstd), acks in line (128 KiB a connection), what net and the kernel
// hold, and garbage: GOGC and GOMEMLIMIT decide how much of that there is.
//
// With a MaxEvent, what a compressed chunk becomes beyond 16 MiB is not kept: it is looked at in a
// window, which holds little more than the event in progress, and the chunk is handed on
// compressed. Where some of its entries cannot stay, the chunk is read once more and compressed
// anew. An event over MaxEvent is in memory as a whole only up to 64 MiB, on top of Memory, and one
// at a time where LargeTurn says so.
//
// # Cores
//
// Each connection is read, checked and decompressed in a goroutine of its own. Connections share
// counters, to which they add once a read, the budget, which is one atomic addition for a buffer
// taken or given back, and, for a few instructions, the locks of the pool. A large chunk that is
// decompressed gives way once a megabyte.
//
// # Not promised
//
// Acks say what the handler says. Without a chunk id the sender does not learn whether a message
// was stored. The shared key proves that both ends know it, and nothing about what comes after: an
// attacker on the way can change events. TLS protects against that.
package forward
