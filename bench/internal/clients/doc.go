// SPDX-License-Identifier: Apache-2.0

// Package clients has the Forward clients of the comparisons behind one face. IBM's stands in a
// program of its own, package ibm: it and the official client both register extension 0 of msgp,
// and the second to do so panics.
package clients
