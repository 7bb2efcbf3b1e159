// SPDX-License-Identifier: Apache-2.0

// Package journal is a segmented, checksummed log of opaque records on disk: append, sync in groups, follow with durable cursors.
package journal
