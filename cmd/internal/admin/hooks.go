// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"time"

	"github.com/spillwaylog/spillway/collector"
)

// Hooks are what a server tells of.
type Hooks struct {
	Version string
	Stats   func() collector.Stats
	Status  func(*collector.Stats) any // as JSON
	Config  func() string              // as YAML, without secrets
	Reload  func() error
	Tail    func(*collector.TailOptions) (*collector.Tail, error)

	unread time.Duration // for tests: instead of maxUnreadTime
}
