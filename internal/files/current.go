// SPDX-License-Identifier: Apache-2.0

package files

// State is what Sync would return if it were called now, after a Write that left nothing waiting.
func (s *Set) State() []byte {
	return s.stateOf(func(f *file) int64 {
		if f.handle == nil || !f.touched {
			if f.touched {
				return f.found
			}
			return f.length
		}
		if !f.expected {
			if info, err := f.handle.Stat(); err == nil {
				return info.Size()
			}
		}
		return f.found
	})
}
