// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package files

func tryCreate(dir string) error { return tryNamed(dir) }
