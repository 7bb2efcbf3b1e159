// SPDX-License-Identifier: Apache-2.0

package conformance

import "testing"

// The limits of the setting "limits". Fluentd's own tests have a decompression limit of 5 kB.
const (
	smallChunk    = 1 << 20
	smallUnpacked = 5 << 10
)

// settings are how this repository's server is started for the tests.
var settings = map[string]func(*probe, testing.TB) *setting{
	"plain": func(*probe, testing.TB) *setting {
		return &setting{args: []string{"--ack", "journaled"}}
	},
	"limits": func(*probe, testing.TB) *setting {
		return &setting{
			args:   []string{"--ack", "journaled", "--max-chunk", "1MiB", "--max-unpacked", "5KiB"},
			server: server{maxChunk: smallChunk, maxUnpacked: smallUnpacked},
		}
	},
	"refuse invalid": func(*probe, testing.TB) *setting {
		return &setting{args: []string{"--ack", "journaled", "--refuse-invalid"}}
	},
}
