// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spillwaylog/spillway/collector"
	"github.com/spillwaylog/spillway/internal/urls"
)

// urlKey is the key of the URL among the parts of an end.
const urlKey = "url"

// ends reads a map of names to ends.
func (r *reader) ends(p pair, side string, to *[]collector.End) {
	if p.value.kind != mapping {
		r.wrong(p.value, "%s are a map of names to URLs, such as %s: {apps: …}, not %v", p.key.value, p.key.value,
			p.value.kind)
		return
	}
	for _, one := range p.value.pairs {
		name := one.key.value
		e, err := collector.ParseEnd(name + "=x:")
		if err != nil || e.Name != name {
			r.wrong(one.key, "the name of an %s has 1 to 64 letters, digits, dots, dashes and underscores", side)
			continue
		}
		if i := slices.IndexFunc(*to, func(e collector.End) bool {
			return strings.EqualFold(e.Name, name) &&
				e.Name != name
		}); i >= 0 {
			r.wrong(one.key, "%s differs from %s in capital letters alone, and would be the same file", name,
				(*to)[i].Name)
			continue
		}
		if !r.say(p.key.value+"."+name, one) {
			continue
		}
		if url, ok := r.url(one, p.key.value); ok {
			*to = append(*to, collector.End{Name: name, URL: url})
		}
	}
}

// url returns the URL of an end, which is written as one, or in parts.
func (r *reader) url(p pair, key string) (url string, ok bool) {
	n := p.value
	if n.kind != mapping {
		return r.scalar(n, p.key.value, "a URL, or a map with url: and its parameters", false)
	}
	at := n.get(urlKey)
	if at == nil {
		r.wrong(p.key, "%s has no url:", p.key.value)
		return "", false
	}
	url, ok = r.scalar(at, urlKey, "a URL", false)
	scheme, _, _ := strings.Cut(url, ":")
	known := r.Ends[key][strings.ToLower(scheme)]
	if known == nil { // of a scheme that is none that alone is told
		if ok && r.Ends[key][""] != nil && len(n.pairs) > 1 {
			r.wrong(at, "the scheme is missing, which says what the others mean")
		}
		return url, ok
	}
	before, query, _ := strings.Cut(url, "?")
	items := []string{query}
	if query == "" {
		items = nil
	}
	for _, q := range n.pairs {
		if q.key.value == urlKey {
			continue
		}
		values, good := r.parameter(q, scheme, known)
		ok = ok && good
		for _, v := range values {
			items = append(items, q.key.value+"="+escape(v))
		}
	}
	if !ok || len(items) == 0 {
		return url, ok
	}
	return before + "?" + strings.Join(items, "&"), true
}

// parameter returns the values of a parameter, which are checked as far as its kind goes.
func (r *reader) parameter(p pair, scheme string, known []collector.Parameter) (values []string, ok bool) {
	name := p.key.value
	i := slices.IndexFunc(known, func(q collector.Parameter) bool { return q.Name == name })
	if i < 0 {
		names := []string{urlKey}
		for _, q := range known {
			names = append(names, q.Name)
		}
		r.wrong(p.key, "unknown parameter %s of %s%s", quote(name), scheme, meant(name, names))
		return nil, false
	}
	param := &known[i]
	items := []*node{p.value}
	if param.Repeated && p.value.kind == list {
		items = p.value.items
	}
	ok = true
	for _, n := range items {
		value, good := r.scalar(n, name, wants(param), param.Takes == urls.TakesBool)
		if good && !takes(param, value) {
			r.refuse(n, name, wants(param), param.Choices)
			good = false
		}
		values, ok = append(values, value), ok && good
	}
	return values, ok
}

// wants says what the value of a parameter is.
func wants(p *collector.Parameter) string {
	switch p.Takes {
	case urls.TakesChoice:
		return oneOf(p.Choices)
	case urls.TakesBool:
		return aTruth
	case urls.TakesInt:
		return fmt.Sprintf("a number from %d to %d", p.Low, p.High)
	case urls.TakesSize:
		return aSize
	case urls.TakesDuration:
		return aDuration
	}
	return "text"
}

// takes says whether a parameter takes a value.
func takes(p *collector.Parameter, value string) bool {
	switch p.Takes {
	case urls.TakesChoice:
		return slices.Contains(p.Choices, value)
	case urls.TakesBool:
		return value == "true" || value == "false"
	case urls.TakesInt:
		n, err := strconv.ParseInt(value, 10, 64)
		return err == nil && p.Low <= n && n <= p.High
	case urls.TakesSize:
		_, err := urls.ParseSize(value)
		return err == nil
	case urls.TakesDuration:
		d, err := time.ParseDuration(value)
		return err == nil && d >= 0
	}
	return true
}

// escape writes a value as it stands in a URL.
func escape(value string) string {
	var b strings.Builder
	for i := range len(value) {
		switch c := value[i]; {
		case c <= ' ', c == 0x7f, strings.IndexByte("%&#@?", c) >= 0:
			fmt.Fprintf(&b, "%%%02X", c)
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}
