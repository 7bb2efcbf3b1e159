// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"context"
	"io"
	"os"

	"github.com/spillwaylog/spillway/internal/await"
)

// A stdinReader reads a file that another process writes, until ctx ends: nothing is read then that
// would not be stored. Other readers than files are read to the end of what they are about to give.
type stdinReader struct {
	ctx context.Context
	r   io.Reader
}

// Read implements io.Reader; its error is that of ctx once that has ended.
func (s *stdinReader) Read(b []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	if f, ok := s.r.(*os.File); ok {
		if err := await.Readable(s.ctx, f); err != nil {
			return 0, err
		}
	}
	return s.r.Read(b)
}
