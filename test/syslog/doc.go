// SPDX-License-Identifier: Apache-2.0

// Package syslog has real senders of syslog send to a collector.
package syslog
