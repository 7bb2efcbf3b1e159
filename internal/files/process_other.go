// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package files

import "time"

func processBegan(int) (began time.Time, known bool) { return time.Time{}, false }
