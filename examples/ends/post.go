// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/spillwaylog/spillway/collector"
	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/msgpack"
)

// postKind is an output that posts the events of a chunk as JSON lines:
// http://host/path?timeout=5s. An answer of 4xx refuses them for good, but for 408 and 429; after
// any other error they come again, in order, under the same key.
func postKind(u *collector.URL, p *collector.Params) (*collector.OutputPlan, error) {
	client := &http.Client{Timeout: p.Duration("timeout", 10*time.Second)}
	url := u.Scheme + ":" + u.Path
	return &collector.OutputPlan{Open: func(env *collector.OutputEnv) (collector.Output, error) {
		return collector.Serial(env, func(ctx context.Context, c *forward.Chunk) ([]collector.Rejected, error) {
			body, err := jsonLines(c)
			if err != nil {
				return []collector.Rejected{{Entry: collector.AllEntries, Err: err}}, nil
			}
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
			if err != nil {
				return nil, err
			}
			req.Header.Set("Content-Type", "application/x-ndjson")
			req.Header.Set("Idempotency-Key", string(c.ID))
			resp, err := client.Do(req)
			if err != nil {
				return nil, err
			}
			resp.Body.Close()
			switch err, code := fmt.Errorf("%s: %s", url, resp.Status), resp.StatusCode; {
			case code/100 == 2:
				return nil, nil
			case code/100 == 4 && code != http.StatusRequestTimeout && code != http.StatusTooManyRequests:
				return []collector.Rejected{{Entry: collector.AllEntries, Err: err}}, nil
			default:
				return nil, err
			}
		}), nil
	}}, nil
}

func jsonLines(c *forward.Chunk) (lines []byte, err error) {
	entries := forward.ReadEntries(c.Entries)
	for e, ok := entries.Next(); ok; e, ok = entries.Next() {
		if lines, _, err = msgpack.AppendJSON(lines, e.Record, forward.AppendExtJSON); err != nil {
			return nil, err
		}
		lines = append(lines, '\n')
	}
	return lines, entries.Err()
}
