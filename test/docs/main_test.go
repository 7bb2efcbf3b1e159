// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"testing"

	"github.com/spillwaylog/spillway/internal/needs"
	"github.com/spillwaylog/spillway/test/internal/rig"
)

func TestMain(m *testing.M) { rig.Main(func() int { return needs.Main(m) }) }
