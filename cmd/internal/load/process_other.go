// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package load

func readUsage(int) (usage, error) { return usage{}, errUnmeasured }
