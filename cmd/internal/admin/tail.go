// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/spillwaylog/spillway/collector"
	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/lines"
)

// Bounds of a tail.
const (
	maxUnreadTime = 10 * time.Second // a client that reads nothing for so long is cut off
	beatEvery     = 5 * time.Second  // a line comes at least as often, so that both ends know of each other
	maxLines      = 256 << 10        // bytes that are gathered, and one line
)

// tailOptions are those that a query asks for.
func tailOptions(query string) (*collector.TailOptions, error) {
	values, err := url.ParseQuery(query)
	if err != nil {
		return nil, err
	}
	o := &collector.TailOptions{}
	for name, list := range values {
		if len(list) > 1 {
			return nil, fmt.Errorf("%s is given twice", name)
		}
		switch name {
		case "tag":
			o.Tag = list[0]
		case "where":
			o.Where = list[0]
		case "rate":
			if o.Rate, err = strconv.Atoi(list[0]); err != nil || o.Rate == 0 {
				return nil, fmt.Errorf("rate: %q is no number of events a second", list[0])
			}
		default:
			return nil, fmt.Errorf("%q is unknown; there are tag, where and rate", name)
		}
	}
	return o, nil
}

// tail answers with a line for each event that is shown, as an output writes it, and now and then
// with one that has only "skipped", which no event begins with.
//
//	{"time":"2026-11-21T02:03:04.123456789Z","tag":"app.web","level":"INFO","msg":"order placed"}
//	{"skipped":48211}
func (from *Hooks) tail(w http.ResponseWriter, r *http.Request) {
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" && site != "none" {
		// They could not read it, but hold the place of one that can.
		http.Error(w, "pages of other sites cannot look", http.StatusForbidden)
		return
	}
	o, err := tailOptions(r.URL.RawQuery)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	tail, err := from.Tail(o)
	if err != nil {
		code := http.StatusServiceUnavailable
		if wrong := (*collector.TailError)(nil); errors.As(err, &wrong) {
			code = http.StatusBadRequest
		}
		http.Error(w, err.Error(), code)
		return
	}
	defer tail.Close()
	c := http.NewResponseController(w)
	_ = c.SetReadDeadline(time.Time{}) // else the server takes its end for that of the client
	w.Header().Set("Content-Type", "application/jsonl")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	encoder := &lines.Encoder{}
	var text []byte
	var failed error
	send := func() {
		_ = c.SetWriteDeadline(time.Now().Add(cmp.Or(from.unread, maxUnreadTime)))
		_, err := w.Write(text)
		if text = text[:0]; cap(text) > 2*maxLines {
			text = nil
		}
		failed = errors.Join(failed, err, c.Flush())
	}
	var sent time.Time // so that the first line comes at once
	for {
		skipped, err := tail.Next(r.Context(), func(_, tag string, e *forward.Entry) {
			if failed != nil {
				return
			}
			if text = encoder.AppendLine(text, tag, *e); len(text) > maxLines {
				send()
			}
		})
		if err != nil || failed != nil {
			return
		}
		if skipped > 0 || len(text) == 0 && time.Since(sent) >= beatEvery {
			text = fmt.Appendf(text, "{\"skipped\":%d}\n", skipped)
		}
		if len(text) > 0 {
			send()
			sent = time.Now()
		}
	}
}
