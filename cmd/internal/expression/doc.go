// SPDX-License-Identifier: Apache-2.0

// Package expression compiles what a condition of a step says beyond comparisons with constants, by
// means of expr-lang/expr: arithmetic, two fields beside each other, functions, lists.
//
//	text ──parse──► tree ──names──► fields and tags in it, and what is refused
//	                  │
//	                  ├──check──► types
//	                  └──guard──► comparisons as conditions have them, costs ──► a program
//
// # What a text means
//
// What a condition says by itself, it says here too, or not at all: a name, a constant, a
// comparison means the same in both, or is refused here. So a comparison with a constant keeps its
// meaning when something stands beside it that makes an expression of both. Comparisons are those
// of this package: what has different types is not equal, and neither less nor greater. A name that
// is ambiguous, such as a-b, is refused.
//
// Functions are those of this package as well, and not the library's: none has an effect, none
// looks at a clock, a file or the order of a map, and each says what it costs.
//
// # Bounds
//
// A text has at most 4 KiB, and 500 nodes. While it is evaluated each call and each turn of a loop
// costs something, and each byte of a text that is looked at; at 64 million of these it fails,
// which is a tenth of a second. What fails is a failure of the step, never a panic.
package expression
