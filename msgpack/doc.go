// SPDX-License-Identifier: Apache-2.0

// Package msgpack is the syntax of MessagePack over bytes: functions that append values, a Scanner that finds where a value ends
// while it still arrives, and transcoding to and from JSON.
package msgpack
