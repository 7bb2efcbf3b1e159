// SPDX-License-Identifier: Apache-2.0

// Package fluent has the API of github.com/fluent/fluent-logger-golang/fluent over package spillway.
package fluent
