// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package main

import "os"

// notifyAccount has no signal that asks.
func notifyAccount(chan<- os.Signal) {}

// askFor says how to ask for the account.
func askFor() string { return "at the end" }
