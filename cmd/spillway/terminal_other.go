// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package main

import "os"

// endSignals end what has a terminal for itself.
var endSignals = []os.Signal{os.Interrupt}

// notifyResized tells of nothing here: the size is looked at each time that something is drawn.
func notifyResized(chan os.Signal) {}

// keysEnd says that readKeys ends with its context.
const keysEnd = false

// inForeground reports whether this process may draw on a terminal.
func inForeground(*os.File) bool { return true }
