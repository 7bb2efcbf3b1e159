// SPDX-License-Identifier: Apache-2.0

// Package forward speaks the Fluentd Forward protocol, versions 1 and 1.5, at both ends.
package forward
