// SPDX-License-Identifier: Apache-2.0

package spill

import (
	"os"
	"testing"

	"github.com/spillwaylog/spillway/internal/needs"
)

func TestMain(m *testing.M) { os.Exit(needs.Main(m)) }
