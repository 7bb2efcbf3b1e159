// SPDX-License-Identifier: Apache-2.0

// Package budget is the memory of all connections of a server: how much there is, what waits for
// it, and what holds it without going on.
//
//	Budget ◄── Holder: one connection's part: asks, waits in line, takes and drops Buffers
//	  │          └─ Share: what the connections of one peer hold together
//	  └─ a pool of Buffers in classes of sizes, kept for their next use
//	Watch  ◄── Pace: how a connection's peer goes on, for what is to be cut while others wait
package budget
