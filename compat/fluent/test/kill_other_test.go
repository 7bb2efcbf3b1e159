// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package test_test

func runChild(string) {}
