// SPDX-License-Identifier: Apache-2.0

// Package record turns Go values into MessagePack: structs, maps and attributes into records, anything into a value.
package record
