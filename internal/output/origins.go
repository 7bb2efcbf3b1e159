// SPDX-License-Identifier: Apache-2.0

package output

import (
	"cmp"
	"runtime"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/lines"
)

// personalOutput is a fileOutput for files of which each process has its own, and for those that
// processes share: in both it is what one process wrote that its successor has to find.
type personalOutput struct{ *fileOutput }

// ResumeFrom implements ByOrigin.
func (o personalOutput) ResumeFrom(origins ...Origin) error { return o.files.resume(origins...) }

// SubmitFrom implements ByOrigin.
func (o personalOutput) SubmitFrom(origin int, c *forward.Chunk, done func(Result)) {
	o.submit(ticket{chunk: c, origin: origin}, done)
}

// sharedTogether bounds the jobs that are written to a shared file together: a state has a few
// bytes for each.
const sharedTogether = 64

// exactClock: two calls of two processes hardly ever have the same time.
const exactClock = runtime.GOOS != "windows" && runtime.GOOS != "darwin"

// distinct returns how lines begin that are never equal in two processes: with their time in
// nanoseconds. "" is none.
func (c *FileConfig) distinct() string {
	t, key := c.Envelope.TimeFormat, cmp.Or(c.Envelope.Time, "time")
	if !exactClock || c.Format != FormatJSON || key == lines.Omit || t != "" && t != "rfc3339" {
		return ""
	}
	return `{"` + key + `":`
}
