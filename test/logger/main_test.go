// SPDX-License-Identifier: Apache-2.0

package logger

import (
	"os"
	"testing"

	"github.com/spillwaylog/spillway/internal/needs"
	"github.com/spillwaylog/spillway/test/internal/rig"
)

func TestMain(m *testing.M) {
	rig.Begin()
	os.Exit(rig.End(needs.Main(m)))
}
