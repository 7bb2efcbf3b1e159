// SPDX-License-Identifier: Apache-2.0

package files

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// BenchmarkMembers lists a folder with 100,000 files of ended processes, as a keeper does at each
// look.
func BenchmarkMembers(b *testing.B) {
	for _, other := range []bool{true, false} {
		b.Run(fmt.Sprintf("others=%t", other), func(b *testing.B) {
			dir, end := b.TempDir(), ".jsonl"
			if other {
				end = ".log"
			}
			for i := range 100_000 {
				if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("app.%d%s", 2_000_000_000+i, end)), nil,
					0o600); err != nil {
					b.Fatal(err)
				}
			}
			p, err := parsePattern(filepath.Join(dir, "app.{pid}.jsonl"))
			if err != nil {
				b.Fatal(err)
			}
			id := identity{pid: "1"}
			m := p.familyOf(p.path(route{}, id), id, Unshared)
			b.ReportAllocs()
			for b.Loop() {
				all, err := m.members(time.Now(), true, nil)
				if err != nil || (len(all) == 0) != other {
					b.Fatal(len(all), err)
				}
			}
		})
	}
}
