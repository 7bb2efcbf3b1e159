// SPDX-License-Identifier: Apache-2.0

// Package deliver is where a logger's chunks go: to Forward servers, files, or streams.
package deliver
