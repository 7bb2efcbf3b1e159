// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spillwaylog/spillway/forward"
)

// A rule is a line of a clients file, before its key is read and its users are looked up.
type rule struct {
	line    int
	host    string
	network netip.Prefix
	key     secret // a file's path as it is written
	users   []string
}

var errNoRule = errors.New("there is no rule in it")

// parseClients reads a file of rules, one a line.
func parseClients(data []byte) ([]rule, error) {
	var rules []rule
	for n, line := range lines(data) {
		r, why := parseRule(line)
		if why != "" {
			return nil, &lineError{n, why}
		}
		r.line = n
		rules = append(rules, r)
	}
	if len(rules) == 0 {
		return nil, errNoRule
	}
	return rules, nil
}

func parseRule(line string) (r rule, why string) {
	if !utf8.ValidString(line) {
		return r, "it is not UTF-8 text"
	}
	given := make(map[string]bool)
	for {
		line = strings.TrimLeft(line, " \t")
		if line == "" || line[0] == '#' {
			break
		}
		var name, value string
		if name, value, line, why = parseWord(line); why != "" {
			return r, why
		}
		if given[name] {
			return r, name + "= is given twice"
		}
		given[name] = true
		if why = r.set(name, value); why != "" {
			return r, why
		}
	}
	switch {
	case !given["host"] && !given["network"]:
		return r, "host= or network= is missing: it says which clients the rule fits"
	case given["key_file"] && given["key_env"]:
		return r, "key_file= and key_env= say the same thing: give one"
	}
	return r, ""
}

// parseWord takes name=value or name="value" from the start of a line.
func parseWord(line string) (name, value, rest, why string) {
	const want = `a rule is made of words such as host=NAME, network=CIDR, key_file=PATH, key_env=NAME and users=A,B`
	i := strings.IndexAny(line, "= \t\"")
	if i <= 0 || line[i] != '=' {
		return "", "", "", want
	}
	switch name = line[:i]; name {
	case "host", "network", "key_file", "key_env", "users":
	default:
		return "", "", "", want
	}
	line = line[i+1:]
	if quoted, ok := strings.CutPrefix(line, `"`); ok {
		if value, rest, ok = strings.Cut(quoted, `"`); !ok {
			return "", "", "", "a quote is not closed"
		}
		if rest != "" && rest[0] != ' ' && rest[0] != '\t' {
			return "", "", "", "a space is missing behind a closing quote"
		}
	} else {
		end := strings.IndexAny(line, " \t")
		if end < 0 {
			end = len(line)
		}
		if value, rest = line[:end], line[end:]; strings.Contains(value, `"`) {
			return "", "", "", "a quote stands around a whole value"
		}
	}
	if value == "" {
		return "", "", "", "the value of " + name + "= is missing"
	}
	return name, value, rest, ""
}

func (r *rule) set(name, value string) (why string) {
	switch name {
	case "host":
		r.host = value
	case "network":
		r.network, why = parseNetwork(value)
	case "key_file":
		r.key.file = file{name, value}
	case "key_env":
		if r.key.env, r.key.name = value, "key_env="; !isVariable(value) {
			why = "key_env= is no name of an environment variable: those are letters, digits and underscores"
		}
	case "users":
		for name := range strings.SplitSeq(value, ",") {
			if name == "" {
				return "there is an empty place in users="
			}
			if slices.Contains(r.users, name) {
				return "users= names somebody twice"
			}
			r.users = append(r.users, name)
		}
	}
	return why
}

// parseNetwork reads a network, or an address, which is a network of one.
func parseNetwork(value string) (netip.Prefix, string) {
	if a, err := netip.ParseAddr(value); err == nil {
		if a.Zone() != "" {
			return netip.Prefix{}, "network= has a zone; a network has none"
		}
		a = a.Unmap()
		return netip.PrefixFrom(a, a.BitLen()), ""
	}
	p, err := netip.ParsePrefix(value)
	switch {
	case err != nil:
		return netip.Prefix{}, "network= is neither a network such as 10.0.0.0/8 nor an address"
	case p.Addr().Is4In6():
		return netip.Prefix{}, "network= is an IPv4 network in IPv6's clothes; write it as IPv4"
	case p != p.Masked():
		return netip.Prefix{}, "network= has bits behind its length that are not zero: 10.1.0.0/8 is written 10.0.0.0/8"
	}
	return p, ""
}

// clientRules reads the keys of rules and looks their users up.
func clientRules(rules []rule, of file, users map[string]string, f *files) ([]forward.ClientRule, error) {
	list := make([]forward.ClientRule, 0, len(rules))
	fail := func(r *rule, format string, args ...any) ([]forward.ClientRule, error) {
		return nil, fmt.Errorf("%s: line %d: %w", of, r.line, fmt.Errorf(format, args...))
	}
	for i := range rules {
		r := &rules[i]
		c := forward.ClientRule{Host: r.host, Network: r.network, Users: r.users}
		if r.users != nil && users == nil {
			return fail(r, "users= needs users_file=, where their passwords are")
		}
		for _, name := range r.users {
			if _, ok := users[name]; !ok {
				return fail(r, "users= names somebody who is not in the file of users")
			}
		}
		if r.key.given() {
			key := r.key
			if key.file.given() && !filepath.IsAbs(key.file.path) {
				key.file.path = filepath.Join(filepath.Dir(of.path), key.file.path)
			}
			var err error
			if c.SharedKey, err = key.get(f); err != nil {
				return fail(r, "%w", err)
			}
			if c.SharedKey == "" {
				return fail(r, "%s: the key is empty", key)
			}
		}
		list = append(list, c)
	}
	return list, nil
}
