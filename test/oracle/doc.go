// SPDX-License-Identifier: Apache-2.0

// Package oracle holds other implementations of MessagePack against package msgpack: tinylib/msgp
// and vmihailenco/msgpack, with values and bytes made at random. Its benchmarks compare the speeds
// in one run.
package oracle
