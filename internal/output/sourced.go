// SPDX-License-Identifier: Apache-2.0

package output

import (
	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/lines"
)

// personalOutput is a fileOutput for files of which each process has its own, and for those that
// processes share: in both it is what one process wrote that its heir has to find.
type personalOutput struct{ *fileOutput }

// ResumeFrom implements Sourced.
func (o personalOutput) ResumeFrom(sources ...Source) error { return o.files.resume(sources...) }

// SubmitFrom implements Sourced.
func (o personalOutput) SubmitFrom(source int, c *forward.Chunk, done func(Result)) {
	o.submit(ticket{chunk: c, source: source}, done)
}

// sharedTogether bounds the jobs that are written to a shared file together: a state has a few
// bytes for each.
const sharedTogether = 64

// distinct says that lines of two processes are never equal: they have their time in nanoseconds.
func (c *FileConfig) distinct() bool {
	t := c.Envelope.TimeFormat
	return c.Format == JSON && c.Envelope.Time != lines.Omit && (t == "" || t == "rfc3339")
}
