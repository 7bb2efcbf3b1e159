// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// Bounds of what is read.
const (
	maxFile   = 256 << 10
	maxAll    = 1 << 20
	maxFiles  = 1000
	maxSecret = 64 << 10
)

// read reads a file of the configuration. The first one may be a pipe, the others are regular ones.
func (r *reader) read(path string, pipe bool) *configFile {
	s := &configFile{name: path, dir: filepath.Dir(path), masks: map[int][]mask{}, plain: true}
	r.files = append(r.files, s)
	data, err := readFile(path, maxFile, pipe)
	if err == nil && r.bytes+len(data) > maxAll {
		err = fmt.Errorf("all files together are larger than %d KiB", maxAll>>10)
	}
	r.bytes += len(data)
	if err != nil {
		r.mistakes = append(r.mistakes, s.mistake(0, 0, "%v", err))
		return nil
	}
	data = bytes.ReplaceAll(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")), []byte("\r\n"), []byte("\n"))
	s.lines = strings.Split(string(data), "\n")
	if line, column, bad := badByte(s.lines); bad {
		r.mistakes = append(r.mistakes, s.mistake(line, column,
			"this is no text: a byte that is not UTF-8, or a control character"))
		return nil
	}
	return s
}

// path is that of a file which the file names.
func (s *configFile) path(name string) string {
	if !filepath.IsAbs(name) {
		name = filepath.Join(s.dir, name)
	}
	if abs, err := filepath.Abs(name); err == nil {
		return abs
	}
	return name
}

// badByte finds what is in no file of text.
func badByte(lines []string) (line, column int, bad bool) {
	for i, text := range lines {
		column := 0
		for _, c := range text {
			column++
			if c < ' ' && c != '\t' || c == 0x7f || c == utf8.RuneError || 0x80 <= c && c < 0xa0 || c == '\u2028' ||
				c == '\u2029' {
				return i + 1, column, true
			}
		}
	}
	return 0, 0, false
}

// readFile reads at most so many bytes.
func readFile(path string, limit int64, pipe bool) ([]byte, error) {
	info, err := os.Stat(path) // before it is opened: to open a pipe may wait for ever
	if err == nil && (info.IsDir() || !pipe && !info.Mode().IsRegular()) {
		err = errors.New("it is no regular file")
	}
	if err != nil {
		return nil, bare(err)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, bare(err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = fmt.Errorf("it is larger than %d KiB", limit>>10)
	}
	return data, bare(err)
}

// bare leaves out the path, which is told anyway.
func bare(err error) error {
	var in *fs.PathError
	if errors.As(err, &in) {
		return in.Err
	}
	return err
}
