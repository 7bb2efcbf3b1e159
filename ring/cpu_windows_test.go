// SPDX-License-Identifier: Apache-2.0

package ring

import "time"

func cpuTime() time.Duration { return 0 }
