// SPDX-License-Identifier: Apache-2.0

// Package moby holds no code: its test runs Docker's fluentd logging driver with its dependency
// replaced by module compat/fluent, as go.mod does here, and as any program can that uses the
// official client:
//
//	replace github.com/fluent/fluent-logger-golang => ../
//
// The module is not part of the workspace, for there the replacement would hold for every module.
// Its tests run with the workspace turned off, and so do the driver's own:
//
//	GOWORK=off go test ./... github.com/moby/moby/v2/daemon/logger/fluentd
package moby
