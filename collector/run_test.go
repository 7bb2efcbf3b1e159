// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"syscall"
	"testing"

	"github.com/spillwaylog/spillway/internal/codes"
)

// unread is a standard output that nobody reads.
type unread struct{ tell func(error) }

func (u unread) Write([]byte) (int, error) {
	u.tell(syscall.EPIPE)
	return 0, syscall.EPIPE
}

// TestRunUnread: a standard output that nobody reads is not waited for, whether inputs go on or
// have ended; what it has not got stays in the journal.
func TestRunUnread(t *testing.T) {
	t.Parallel()
	for _, more := range [][]string{nil, {"forward://127.0.0.1:0"}} {
		ctx, cancel := context.WithCancelCause(t.Context())
		var log bytes.Buffer
		c, err := Open(&Config{
			Inputs: Ends(append(more, "stdin:")...), Outputs: Ends("stdout:", "discard:"), Dir: t.TempDir(),
			Stdin: strings.NewReader("line\n"), Stdout: unread{cancel}, Log: slog.New(slog.NewTextHandler(&log, nil)),
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Run(ctx); err != nil {
			t.Error(err)
		}
		if s := c.Stats(); s.Outputs[0].Behind != 1 || s.Outputs[1].Out != 1 {
			t.Errorf("%+v", s.Outputs)
		}
		if strings.Contains(log.String(), string(codes.DrainUnfinished)) {
			t.Errorf("it was waited for: %s", &log)
		}
	}
}
