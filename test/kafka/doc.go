// SPDX-License-Identifier: Apache-2.0

// Package kafka starts real brokers, and looks at what a collector writes to their topics.
package kafka
