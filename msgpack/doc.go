// SPDX-License-Identifier: Apache-2.0

// Package msgpack is the syntax of MessagePack over bytes. It appends values to a slice, finds
// where a value ends while it still arrives, and turns values into JSON text and back. There is no
// reflection and no tree of values: bytes go in, bytes come out.
//
// # Words
//
//   - value: a scalar (nil, bool, number), a str, bin or ext, or an array or map with all that is
//     in it.
//   - header: the first byte of a value, and the length or count that belongs to it.
//   - payload: the bytes of a str, bin or ext, after its header.
//   - token: a scalar, or the header of anything else (ReadToken).
//   - limits: how deep a value may nest, and how much a header may claim (Limits).
//
// # Bytes
//
//	00-7f  integer 0..127            cc-cf  uint8 16 32 64    ┌──┬───┐  value in 1, 2, 4 or 8 bytes, big-endian
//	e0-ff  integer -32..-1           d0-d3  int8 16 32 64     └──┴───┘  ca, cb: float32, float64
//	c0     nil                       c2 c3  false, true
//
//	       ┌──┬─────────┐                   ┌──┬───┬─────────┐          ┌──┬───┬────┬──────┐
//	a0-bf  │  │ payload │  d9-db   str      │  │ n │ payload │   c7-c9  │  │ n │type│ data │  ext
//	       └──┴─────────┘  c4-c6   bin      └──┴───┴─────────┘          └──┴───┴────┴──────┘
//	n in the low 5 bits    n in 1, 2 or 4 bytes                  d4-d8: n is 1, 2, 4, 8 or 16 and not written
//
//	       ┌──┬──────────┐                  ┌──┬───┬──────────┐
//	90-9f  │  │ n values │  dc dd  array    │  │ n │ n values │
//	80-8f  │  │ n pairs  │  de df  map      │  │ n │ n pairs  │
//	       └──┴──────────┘                  └──┴───┴──────────┘
//	n in the low 4 bits    n in 2 or 4 bytes                     c1 is never used
//
// # Promises
//
//   - A Scanner looks at each byte of headers once, at payload never, and gives the same answer
//     however the bytes are cut into pieces.
//   - What a header claims is never allocated. A Scanner allocates 4 bytes for each level of
//     nesting beyond the eighth; ReadToken, Skip and the Append functions allocate nothing but the
//     room of what they append.
//   - JSON that AppendJSON writes without an error is valid (as far as an ExtJSON keeps its
//     promise), whatever the input: hostile nesting is an error, not a stack overflow.
//   - Results are the same on 32 and 64 bits.
//   - Whatever Skip accepts, AppendJSON writes.
//
// Not promised: that a str is UTF-8 (it is carried as it is, and repaired only in JSON), that the
// keys of a map differ, that numbers have their shortest form. Package msgpack writes the shortest
// form and accepts all.
package msgpack
