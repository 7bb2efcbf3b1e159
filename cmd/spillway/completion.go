// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	_ "embed" // the scripts
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"
)

// completeName is the command that the scripts run at each press of the tab key, with the words up
// to the cursor. They only show what it answers, so that one place knows the grammar. The libraries
// that complete for kong have stood still for years, and show no descriptions.
const completeName = "__complete"

var (
	//go:embed completion.bash
	bashScript string
	//go:embed completion.zsh
	zshScript string
	//go:embed completion.fish
	fishScript string
)

type completionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// Help tells how a shell learns it.
func (c *completionCmd) Help() string {
	return `For this shell: source <(spillway completion bash), in zsh source <(spillway completion zsh) after compinit, in fish spillway completion fish | source. For all shells to come, put that line into ~/.bashrc, ~/.zshrc or ~/.config/fish/config.fish.`
}

// Run prints a script.
func (c *completionCmd) Run(s *streams) error {
	_, err := io.WriteString(s.out, map[string]string{
		"bash": bashScript, "zsh": zshScript,
		"fish": fishScript,
	}[c.Shell])
	return err
}

// A completion is what may stand in place of the last word of a command line.
type completion struct {
	kind  string // words; or files or dirs, which the shell knows better
	words []candidate
}

type candidate struct{ text, about string }

// write writes a completion as the scripts read it: the kind, and a line for each word.
func (c *completion) write(out io.Writer) error {
	w := bufio.NewWriter(out)
	fmt.Fprintln(w, c.kind)
	for _, word := range c.words {
		fmt.Fprintf(w, "%s\t%s\n", word.text, word.about)
	}
	return w.Flush()
}

// complete completes the last of some words.
func complete(node *kong.Node, words []string) *completion {
	c := &completion{kind: "words"}
	if len(words) > 1 && words[0] == "help" { // whose arguments are a command line
		words = words[1:]
	}
	if len(words) == 0 {
		return c
	}
	last := words[len(words)-1]
	var open *kong.Flag // its value comes next
	arguments := 0
	for _, word := range words[:len(words)-1] {
		switch {
		case open != nil:
			open = nil
		case strings.HasPrefix(word, "--"):
			if f := flagOf(node, word); f != nil && !f.IsBool() && !strings.Contains(word, "=") {
				open = f
			}
		case strings.HasPrefix(word, "-"):
			if f := shortFlag(node, word); f != nil && !f.IsBool() {
				open = f
			}
		case childOf(node, word) != nil:
			node = childOf(node, word)
		default:
			arguments++
		}
	}
	if open != nil {
		c.addValues(open.Value, "", last)
		return c
	}
	if name, value, ok := strings.Cut(last, "="); ok && strings.HasPrefix(name, "--") {
		if f := flagOf(node, name); f != nil {
			c.addValues(f.Value, name+"=", value)
		}
		return c
	}
	for _, child := range node.Children {
		if !child.Hidden {
			c.add(child.Name, child.Help, last)
		}
	}
	if arguments < len(node.Positional) && !strings.HasPrefix(last, "-") {
		c.addValues(node.Positional[arguments], "", last)
	} else if node.Leaf() || strings.HasPrefix(last, "-") {
		for _, group := range node.AllFlags(true) {
			for _, f := range group {
				c.add("--"+f.Name, f.Help, last)
			}
		}
	}
	return c
}

// add adds a word that begins like the one that it replaces.
func (c *completion) add(text, about, last string) {
	if strings.HasPrefix(text, last) {
		about, _, _ = strings.Cut(about, ". ")
		c.words = append(c.words, candidate{text, strings.TrimSuffix(about, ".")})
	}
}

// addValues adds the values that a flag or an argument may have. A flag that stands in the same
// word comes before each.
func (c *completion) addValues(v *kong.Value, flag, last string) {
	switch v.Tag.Type {
	case "path", "existingfile":
		c.kind = "files"
	case "existingdir":
		c.kind = "dirs"
	}
	if v.Enum == "" {
		return
	}
	if i := strings.LastIndexByte(last, ','); i >= 0 && v.IsSlice() {
		flag, last = flag+last[:i+1], last[i+1:]
	}
	for _, value := range v.EnumSlice() {
		c.add(flag+value, "", flag+last)
	}
}

func flagOf(node *kong.Node, word string) *kong.Flag {
	name, _, _ := strings.Cut(strings.TrimPrefix(word, "--"), "=")
	for _, group := range node.AllFlags(false) {
		for _, f := range group {
			if f.Name == name {
				return f
			}
		}
	}
	return nil
}

// shortFlag is the flag of a word such as -c.
func shortFlag(node *kong.Node, word string) *kong.Flag {
	for _, group := range node.AllFlags(false) {
		for _, f := range group {
			if f.Short != 0 && word == "-"+string(f.Short) {
				return f
			}
		}
	}
	return nil
}

func childOf(node *kong.Node, name string) *kong.Node {
	for _, child := range node.Children {
		if child.Name == name {
			return child
		}
	}
	return nil
}
