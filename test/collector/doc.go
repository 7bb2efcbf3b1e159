// SPDX-License-Identifier: Apache-2.0

// Package collector tries the collector as it runs: the real binary under hostile and slow peers,
// full disks, restarts and reloads, with what it says of itself.
package collector
