// SPDX-License-Identifier: Apache-2.0

package processes

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

const (
	lineMark = "LOGGED #"
	lineWith = " with "
)

// Found is what was there after the processes had ended.
type Found struct {
	Lines    int `json:"lines"`
	Missing  int `json:"missing"`
	Torn     int `json:"torn"`     // no line of any process
	Repeated int `json:"repeated"` // beyond the first
	Late     int `json:"late"`     // after a later line of the same process
}

// add is for the rounds of a way: all that was wrong in any counts.
func (f *Found) add(o Found) {
	f.Lines += o.Lines
	f.Missing += o.Missing
	f.Torn += o.Torn
	f.Repeated += o.Repeated
	f.Late += o.Late
}

// check reads what the processes of a round wrote.
func (s *session) check(processes, lines int) (Found, error) {
	if s.received != nil {
		return check([]io.Reader{s.received}, processes, lines)
	}
	paths, err := filepath.Glob(filepath.Join(s.dir, "log*"))
	if err != nil {
		return Found{}, err
	}
	paths = slices.DeleteFunc(paths, func(path string) bool { return strings.HasSuffix(path, "~lock") })
	var readers []io.Reader
	for _, path := range paths {
		f, err := os.Open(path)
		if err != nil {
			return Found{}, err
		}
		defer f.Close()
		readers = append(readers, f)
	}
	return check(readers, processes, lines)
}

func check(readers []io.Reader, processes, lines int) (Found, error) {
	var f Found
	seen := make([][]bool, processes)
	last := make([]int, processes)
	for i := range seen {
		seen[i] = make([]bool, lines)
	}
	for _, r := range readers {
		for in := bufio.NewReaderSize(r, 64<<10); ; {
			line, err := in.ReadSlice('\n')
			if len(line) == 0 && errors.Is(err, io.EOF) {
				break
			}
			if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, bufio.ErrBufferFull) {
				return f, err
			}
			i, n, ok := parse(line)
			if !ok || n >= processes || i >= lines {
				f.Torn++
				continue
			}
			f.Lines++
			if seen[n][i] {
				f.Repeated++
			}
			seen[n][i] = true
			if i < last[n] {
				f.Late++
			}
			last[n] = i
		}
	}
	for _, all := range seen {
		for _, there := range all {
			if !there {
				f.Missing++
			}
		}
	}
	return f, nil
}

// parse takes a line apart: as the article has it, or as JSON with that as its message.
func parse(line []byte) (i, process int, ok bool) {
	text, ok := bytes.CutSuffix(line, []byte("\n"))
	if !ok {
		return 0, 0, false
	}
	if bytes.HasPrefix(text, []byte(`{"time":"`)) {
		_, text, _ = bytes.Cut(text, []byte(`"msg":"`))
		if text, ok = bytes.CutSuffix(text, []byte(`"}`)); !ok {
			return 0, 0, false
		}
	}
	if text, ok = bytes.CutPrefix(text, []byte(lineMark)); !ok {
		return 0, 0, false
	}
	first, second, ok := bytes.Cut(text, []byte(lineWith))
	if !ok {
		return 0, 0, false
	}
	i, err := strconv.Atoi(string(first))
	process, other := strconv.Atoi(string(second))
	return i, process, err == nil && other == nil && i >= 0 && process >= 0
}
