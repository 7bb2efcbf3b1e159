// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"errors"
	"fmt"
)

// Reload reads the files of all inputs' credentials now. They are also read when they change, so this is for who wants to know whether they are good: of
// those that are not, the old version stays in force and the error says why. Connections that stand are not touched. Reload may be called at any time.
func (c *Collector) Reload() error {
	c.mu.Lock()
	inputs := c.inputs
	c.mu.Unlock()
	var errs []error
	for _, l := range inputs {
		if err := l.credentials.Reload(); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", l.url, err))
		}
	}
	return errors.Join(errs...)
}
