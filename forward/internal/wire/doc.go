// SPDX-License-Identifier: Apache-2.0

// Package wire is the bytes of the Forward protocol, apart from connections: where a message ends
// and what it has in it, entries looked at and written anew, options, acks, the letters of the
// handshake, compression. It knows neither sockets nor handlers, and keeps no bytes that it is
// given.
//
//	bytes as they arrive ──► Decoder ──► a message: tag, entries or event, Option
//	                            │
//	                            └─ Check ──► entries that can stay; others: Rewrite, with a Stamp
//
// Nothing that is read is copied, and no byte of an entry is walked twice, however it was cut: what
// was found are offsets. What is wrong is a [Fault], with its [Kind]. A length read from the wire
// sizes nothing.
package wire
