// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"io/fs"
	"time"

	"github.com/spillwaylog/spillway/internal/files"
	"github.com/spillwaylog/spillway/internal/lines"
)

// FileConfig says where lines go and how. Only Path is needed.
type FileConfig struct {
	Path     string            // with the placeholders {tag}, {date}, {hour}, {host}, {pid}; see package files
	Format   Format            // JSON or Text
	Text     lines.TextOptions // of Text
	Envelope lines.Options     // of JSON
	Rotate   files.Rotation
	FileMode fs.FileMode   // of new files, before umask; default 0644
	DirMode  fs.FileMode   // of new directories, before umask; default 0755
	Sync     time.Duration // how often what was written is brought to the disk; 0: only by Close

	MinBackoff, MaxBackoff time.Duration // between attempts; defaults 100 ms and 10 s
	Trip
}

// NewFile returns a destination that appends lines to files.
func NewFile(c *FileConfig) (Destination, error) {
	return nil, nil
}
