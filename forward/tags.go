// SPDX-License-Identifier: Apache-2.0

package forward

// tags gives a tag that was seen before as the same string, without allocating.
type tags struct {
	last  string
	known map[string]string
	bytes int
}

// What tags remembers at most, before it begins anew.
const (
	maxTags     = 1024
	maxTagBytes = 64 << 10
)

// get returns b as a string, and whether it is new here.
func (t *tags) get(b []byte) (string, bool) {
	if t.last == string(b) && len(b) > 0 {
		return t.last, false
	}
	if s, ok := t.known[string(b)]; ok {
		t.last = s
		return s, false
	}
	if t.known == nil || len(t.known) == maxTags || t.bytes > maxTagBytes {
		t.known, t.bytes = make(map[string]string), 0
	}
	s := string(b)
	t.known[s] = s
	t.bytes += len(s)
	t.last = s
	return s, true
}
