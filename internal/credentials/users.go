// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

var errNoUser = errors.New("there is no user in it")

// parseUsers reads a file of users: name:password, a line each.
func parseUsers(data []byte) (map[string]string, error) {
	users := make(map[string]string)
	at := make(map[string]int)
	for n, line := range lines(data) {
		name, password, colon := strings.Cut(line, ":")
		why := ""
		switch {
		case !colon:
			why = "there is no colon between name and password"
		case name == "":
			why = "there is no name before the colon"
		case strings.Trim(name, " \t") != name:
			why = "there is a space at an end of the name"
		case !utf8.ValidString(name):
			why = "the name is not UTF-8 text"
		case password == "":
			why = "there is no password behind the colon"
		case at[name] > 0:
			why = fmt.Sprintf("this user is in line %d already", at[name])
		}
		if why != "" {
			return nil, &lineError{n, why}
		}
		users[name], at[name] = password, n
	}
	if len(users) == 0 {
		return nil, errNoUser
	}
	return users, nil
}
