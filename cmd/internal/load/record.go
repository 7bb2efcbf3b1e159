// SPDX-License-Identifier: Apache-2.0

package load

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spillwaylog/spillway/msgpack"
)

// maxRecords bounds what ReadRecords returns, in bytes.
const maxRecords = 16 << 20

// ReadRecords reads JSON objects, one after another, for Options.Records.
func ReadRecords(r io.Reader) ([][]byte, error) {
	dec := json.NewDecoder(io.LimitReader(r, 4*maxRecords))
	dec.UseNumber()
	var records [][]byte
	total := 0
	for {
		b, err := msgpack.AppendFromJSON(nil, dec)
		if errors.Is(err, io.EOF) {
			if len(records) == 0 {
				return nil, errors.New("no records in it")
			}
			return records, nil
		}
		if err != nil {
			return nil, fmt.Errorf("record %d: %w", len(records)+1, err)
		}
		if _, _, err := split(b); err != nil {
			return nil, fmt.Errorf("record %d: %w", len(records)+1, err)
		}
		if total += len(b); total > maxRecords {
			return nil, fmt.Errorf("more than %d bytes of records", maxRecords)
		}
		records = append(records, b)
	}
}
