// SPDX-License-Identifier: Apache-2.0

//go:build !race

package rig

// RaceDetector tells whether the tests, and so the binary, have the race detector on.
const RaceDetector = false
