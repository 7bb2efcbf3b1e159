// SPDX-License-Identifier: Apache-2.0

package step

import (
	"errors"
	"fmt"
	"strings"
)

// maxForms is how many patterns braces may stand for.
const maxForms = 64

// A glob is a pattern of tags: forms of which one has to match, each in its parts between dots.
type glob [][]string

// parseGlob reads a pattern.
func parseGlob(text string) (glob, error) {
	if text == "" {
		return nil, errors.New("match is missing; ** is every tag")
	}
	forms, err := unbrace([]string{""}, text)
	if err != nil {
		return nil, err
	}
	var g glob
	for _, form := range forms {
		parts := strings.Split(form, ".")
		for _, p := range parts {
			if strings.Contains(p, "**") && p != "**" {
				return nil, fmt.Errorf("** stands for whole parts of a tag, not within %q; * stands for some of one", p)
			}
		}
		g = append(g, parts)
	}
	return g, nil
}

// unbrace appends a text to each of the beginnings, once for each alternative in its braces.
func unbrace(begun []string, text string) ([]string, error) {
	for text != "" {
		at := strings.IndexAny(text, "{}")
		if at < 0 {
			at = len(text)
		}
		alternatives := []string{text[:at]}
		if text = text[at:]; text != "" && alternatives[0] == "" {
			inner, rest, closed := strings.Cut(text[1:], "}")
			if text[0] == '}' || !closed || strings.Contains(inner, "{") {
				return nil, errors.New("braces stand in pairs, and not within each other: {a,b}")
			}
			alternatives, text = strings.Split(inner, ","), rest
		}
		var next []string
		for _, b := range begun {
			for _, a := range alternatives {
				next = append(next, b+a)
			}
		}
		if begun = next; len(begun) > maxForms {
			return nil, fmt.Errorf("its braces stand for more than %d patterns", maxForms)
		}
	}
	return begun, nil
}

// match says whether a tag is one of the pattern's.
func (g glob) match(tag string) bool {
	parts := strings.Split(tag, ".")
	for _, form := range g {
		if matchParts(form, parts) {
			return true
		}
	}
	return false
}

func matchParts(form, parts []string) bool {
	return matchStars(len(form), len(parts),
		func(f int) bool { return form[f] == "**" },
		func(f, p int) bool { return matchPart(form[f], parts[p]) })
}

// matchPart is the same with the bytes of one part.
func matchPart(form, part string) bool {
	return matchStars(len(form), len(part),
		func(f int) bool { return form[f] == '*' },
		func(f, p int) bool { return form[f] == part[p] })
}

// matchStars matches so many places of a form with so many of a text: a star takes any number, any
// other place one that fits. It goes back to the last star only: what an earlier one took more of,
// that one could, too.
func matchStars(forms, texts int, isStar func(f int) bool, fits func(f, p int) bool) bool {
	f, p, star, again := 0, 0, -1, 0
	for p < texts {
		switch {
		case f < forms && isStar(f):
			star, again = f, p
			f++
		case f < forms && fits(f, p):
			f++
			p++
		case star >= 0:
			again++
			f, p = star+1, again
		default:
			return false
		}
	}
	for f < forms && isStar(f) {
		f++
	}
	return f == forms
}
