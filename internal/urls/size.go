// SPDX-License-Identifier: Apache-2.0

package urls

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// ErrSize says that a text is no number of bytes.
var ErrSize = errors.New("not a size such as 64MiB")

// units are looked for from the longest, so that "MiB" is not taken for "B".
var units = []struct {
	name string
	size int64
}{
	{"KiB", 1 << 10},
	{"MiB", 1 << 20},
	{"GiB", 1 << 30},
	{"TiB", 1 << 40},
	{"kB", 1e3},
	{"KB", 1e3},
	{"MB", 1e6},
	{"GB", 1e9},
	{"TB", 1e12},
	{"B", 1},
	{"", 1},
}

// ParseSize reads a number of bytes: digits and one of KiB, MiB, GiB, TiB (powers of 1024), kB, MB,
// GB, TB (powers of 1000), B or nothing. "64M" is refused, since both are meant by it.
func ParseSize(text string) (int64, error) {
	for _, u := range units {
		digits, ok := strings.CutSuffix(text, u.name)
		if !ok {
			continue
		}
		n, err := strconv.ParseUint(digits, 10, 63)
		if err != nil || int64(n) > math.MaxInt64/u.size {
			break
		}
		return int64(n) * u.size, nil
	}
	return 0, fmt.Errorf("%q: %w", text, ErrSize)
}
