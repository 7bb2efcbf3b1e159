// SPDX-License-Identifier: Apache-2.0

// Package inflate decompresses a gzip member in one go, into room that is there: what nearly every
// compressed chunk is.
//
//	n, ok := inflate.Claimed(src)
//	dst := make([]byte, n+inflate.Slack)
//	ok = d.Gunzip(dst, src) // dst[:n]
//
// That takes half the time of a stream, which cannot write where its caller wants the bytes, asks
// for input and room at every step, and goes over all of it once more to copy it out of its window.
//
// It says yes or no. Whatever is out of the ordinary, a second member, a name in the header, an
// error anywhere, is no: then a stream is asked, which knows better what is wrong. Yes is sure: the
// length and the checksum of the member are right.
//
// The formats are those of RFC 1951 and RFC 1952. Tables with tables behind them, whose entries
// hold base and number of extra bits, were learnt from Eric Biggers's libdeflate.
package inflate
