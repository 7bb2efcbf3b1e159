// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"bytes"
	"errors"
	"fmt"
	"os"

	"github.com/spillwaylog/spillway/internal/urls"
)

// A secret is where a secret stands: in a file, or in a variable of the environment.
type secret struct {
	file file
	env  string // never shown: in its place the secret itself is often written
	name string // of the parameter that names env
}

func (s secret) given() bool { return s.file.given() || s.env != "" }

// readSecret asks for name_file and name_env.
func readSecret(u *urls.URL, p *urls.Params, name string) (s secret, err error) {
	s.file, s.env, s.name = filePath(p, name+"_file"), p.String(name+"_env", ""), name+"_env="
	if s.file.given() && s.env != "" {
		return s, u.Errorf("%s_file and %s_env say the same thing: give one", name, name)
	}
	if s.env != "" && !isVariable(s.env) {
		return s, u.Errorf("%s_env is no name of an environment variable: those are letters, digits and underscores",
			name)
	}
	return s, nil
}

// get returns the secret. It may be empty.
func (s secret) get(f *files) (string, error) {
	if s.env != "" {
		text, ok := os.LookupEnv(s.env)
		if !ok {
			return "", fmt.Errorf("%s is not set", s)
		}
		text, err := oneLine([]byte(text))
		if err != nil {
			return "", fmt.Errorf("%s: %w", s, err)
		}
		return text, nil
	}
	data, err := f.read(s.file, maxSecret, true)
	if err != nil {
		return "", err
	}
	text, err := oneLine(data)
	if err != nil {
		return "", fmt.Errorf("%s: %w", s.file, err)
	}
	return text, nil
}

// String says where the secret stands, when it is missed.
func (s secret) String() string {
	if s.env != "" {
		return "the environment variable that " + s.name + " names"
	}
	return s.file.String()
}

var (
	errMark  = errors.New("it begins with a byte order mark, which is no part of a secret: save it without one")
	errZero  = errors.New("it has a zero byte, as UTF-16 does: save it as UTF-8")
	errLines = errors.New("it has more than one line; a secret is one line of text")
)

// oneLine returns a secret without the end of its line.
func oneLine(data []byte) (string, error) {
	if bytes.HasPrefix(data, mark) {
		return "", errMark
	}
	if bytes.IndexByte(data, 0) >= 0 {
		return "", errZero
	}
	data, _ = bytes.CutSuffix(data, []byte("\n"))
	data, _ = bytes.CutSuffix(data, []byte("\r"))
	if bytes.IndexByte(data, '\n') >= 0 {
		return "", errLines
	}
	return string(data), nil
}

// mark is what some editors put before UTF-8 text.
var mark = []byte("\xef\xbb\xbf")

// isVariable reports whether name can name a variable of the environment.
func isVariable(name string) bool {
	for i := range len(name) {
		switch c := name[i]; {
		case 'a' <= c|0x20 && c|0x20 <= 'z', c == '_', i > 0 && '0' <= c && c <= '9':
		default:
			return false
		}
	}
	return name != ""
}
