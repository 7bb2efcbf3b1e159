// SPDX-License-Identifier: Apache-2.0

package codes

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
)

func TestCode(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{AddSource: true})).With("output", "bus")
	OutputWorks.Debug(log, "nobody wants to know")
	OutputBroken.Error(log, "output broken", "error", io.EOF)
	got := out.String()
	if !strings.Contains(got, "level=ERROR source=") || !strings.Contains(got, "code_test.go:19 msg=") ||
		!strings.HasSuffix(got, " msg=\"output broken\" output=bus code=output-broken error=EOF\n") ||
		strings.Count(got, "\n") != 1 {
		t.Error(got)
	}
}

func TestOf(t *testing.T) {
	err := FileMoved.Errorf("files: %s: %w", "x", io.EOF)
	for _, e := range []error{err, fmt.Errorf("bus: %w", err), errors.Join(io.ErrClosedPipe, err)} {
		if got := Of(e, OutputError); got != FileMoved || !errors.Is(e, io.EOF) {
			t.Errorf("%v: %v", e, got)
		}
	}
	if got := Of(io.EOF, OutputError); got != OutputError {
		t.Error(got)
	}
	if err.Error() != "files: x: EOF" {
		t.Error(err)
	}
}
