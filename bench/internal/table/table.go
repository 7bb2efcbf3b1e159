// SPDX-License-Identifier: Apache-2.0

// Package table prints the tables of the comparisons.
package table

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// A Table is a title, a heading and rows.
type Table struct {
	title string
	rows  [][]string
}

// New is a table without rows.
func New(title string, heading ...string) *Table {
	return &Table{title: title, rows: [][]string{heading}}
}

// Row adds a row.
func (t *Table) Row(cells ...string) { t.rows = append(t.rows, cells) }

// Print writes the table, numbers to the right.
func (t *Table) Print(w io.Writer) {
	fmt.Fprintf(w, "\n%s\n", t.title)
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	width := 0
	for _, r := range t.rows {
		width = max(width, len(r[0]))
	}
	for _, r := range t.rows {
		fmt.Fprintf(tw, "%-*s\t%s\t\n", width, r[0], strings.Join(r[1:], "\t"))
	}
	tw.Flush()
}

// Median is the middle of v, 0 where it is empty.
func Median(v []float64) float64 {
	s := slices.Sorted(slices.Values(v))
	if len(s) == 0 {
		return 0
	}
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

// Number is a number with so many decimals.
func Number(v float64, decimals int) string { return strconv.FormatFloat(v, 'f', decimals, 64) }
