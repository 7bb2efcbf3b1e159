// SPDX-License-Identifier: Apache-2.0

package journal

// A job is one thing that the allocator does: what it takes for that is taken already. work runs
// without the lock, and settle then with it: it is told what work returned, and returns whether the
// job failed.
type job struct {
	work   func() error
	settle func(error) error
}
