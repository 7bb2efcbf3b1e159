// SPDX-License-Identifier: Apache-2.0

package urls

import (
	"strings"
)

// hidden stands for a secret.
const hidden = "***"

// secretName reports whether a parameter of that name holds a secret. The path of a file that holds
// one and the way in which clients are authenticated are none; the name of a variable is treated as
// one, for in its place the secret itself is often written.
func secretName(name string) bool {
	name = strings.ToLower(name)
	if strings.HasSuffix(name, "_file") || name == "client_auth" {
		return false
	}
	name = strings.TrimSuffix(name, "_env")
	for _, word := range []string{"pass", "secret", "token", "credential", "auth"} {
		if strings.Contains(name, word) {
			return true
		}
	}
	for _, end := range []string{
		"shared_key", "shared-key", "sharedkey", "api_key", "apikey", "access_key",
		"private_key",
	} {
		if strings.HasSuffix(name, end) {
			return true
		}
	}
	return false
}

// atSign is why Parse refuses an at sign where a host can stand.
const atSign = "a user and password cannot stand in a URL, where process lists show them; an at sign in a value is written %40"

// hasUser reports whether text may hold a user and a password: an at sign in anything but a plain
// path. Passwords hold any character, question and equals signs too, so that no place behind the
// slashes is safe.
func hasUser(text string) bool {
	if !strings.Contains(text, "@") {
		return false
	}
	scheme, rest, colon := strings.Cut(text, ":")
	s, known := shapeOf(strings.ToLower(scheme))
	if known && colon && s.kind != hosts {
		return strings.HasPrefix(rest, "//") && !strings.HasPrefix(rest, "///")
	}
	return !strings.HasPrefix(text, "/") && !strings.HasPrefix(text, ".")
}

// hideSecrets returns text fit to be shown, whatever it is: it works on texts that Parse refuses,
// too.
func hideSecrets(text string) string {
	if hasUser(text) {
		if i := strings.Index(text, "//"); i >= 0 && i < strings.IndexByte(text, '@') {
			return text[:i+2] + hidden
		}
		return hidden
	}
	return hideValues(text, secretName)
}

// hideValues returns text without the values of some parameters, and of those whose names cannot be
// read.
func hideValues(text string, hide func(name string) bool) string {
	before, query, asked := strings.Cut(text, "?")
	if !asked {
		return before
	}
	items := strings.Split(query, "&")
	for i, item := range items {
		name, _, equals := strings.Cut(item, "=")
		decoded, reason := decode(name)
		if equals && (reason != "" || hide(decoded)) {
			items[i] = name + "=" + hidden
		}
	}
	return before + "?" + strings.Join(items, "&")
}
