// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"
)

func notifyAccount(c chan<- os.Signal) { signal.Notify(c, syscall.SIGUSR1) }
