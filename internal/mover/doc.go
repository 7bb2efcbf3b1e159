// SPDX-License-Identifier: Apache-2.0

// Package mover carries events from the ring to the destination. A skeleton.
package mover
