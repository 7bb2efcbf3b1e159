// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// expand returns a scalar with what ${NAME}, ${NAME:-default} and ${file:PATH} stand for. $${ is
// ${. What they give is kept, so that it is never shown. A value is a scalar whatever is in it.
func (r *reader) expand(n *node) (value string, ok bool) {
	var b strings.Builder
	rest := n.value
	ok = true
	for {
		before, after, found := strings.Cut(rest, "${")
		b.WriteString(before)
		if !found {
			break
		}
		if strings.HasSuffix(before, "$") {
			b.WriteString("{")
			rest = after
			continue
		}
		expression, tail, closed := strings.Cut(after, "}")
		if !closed {
			r.wrong(n, "the brace that closes ${ is missing; ${ itself is written $${")
			return "", false
		}
		given, err := r.lookUp(n, expression)
		if err != nil {
			r.wrong(n, "%v", err)
			ok = false
		}
		b.WriteString(given)
		rest = tail
		if b.Len() > maxFile {
			r.wrong(n, "the value is larger than %d KiB", maxFile>>10)
			return "", false
		}
	}
	return b.String(), ok
}

// lookUp returns what stands between ${ and } is for.
func (r *reader) lookUp(n *node, expression string) (string, error) {
	if path, ok := strings.CutPrefix(expression, "file:"); ok {
		if path == "" {
			return "", errors.New("${file:} names no file")
		}
		if !filepath.IsAbs(path) {
			path = filepath.Join(n.file.dir, path)
		}
		data, err := readFile(path, maxSecret, false)
		if err != nil {
			return "", fmt.Errorf("${file:%s}: %w", path, err)
		}
		value := strings.TrimSuffix(strings.TrimSuffix(string(data), "\n"), "\r")
		if strings.ContainsAny(value, "\n\r\x00") {
			return "", fmt.Errorf("${file:%s}: the file has more than one line", path)
		}
		hide(&r.file.given, value)
		hide(&r.file.files, value)
		return value, nil
	}
	name, otherwise, has := strings.Cut(expression, ":-")
	if !variable.MatchString(name) {
		return "", errors.New("this is no variable of the environment: ${NAME}, ${NAME:-default} and ${file:PATH} are taken; ${ itself is written $${")
	}
	value, set := os.LookupEnv(name)
	switch {
	case value != "":
		hide(&r.file.given, value)
		return value, nil
	case has:
		return otherwise, nil
	case set:
		return "", fmt.Errorf("the variable %s is empty; ${%s:-default} says what holds then", name, name)
	}
	return "", fmt.Errorf("the variable %s is not set; ${%s:-default} says what holds then", name, name)
}
