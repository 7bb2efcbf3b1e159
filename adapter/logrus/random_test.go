// SPDX-License-Identifier: Apache-2.0

package spillwaylogrus

import (
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/spillwaylog/spillway/internal/alike"
)

type point struct {
	X    int            `json:"x"`
	Name string         `json:"name,omitempty"`
	In   *point         `json:"in,omitempty"`
	Map  map[string]any `json:"map"`
}

// randomValue is any value that both write alike; the bytes are ASCII.
func randomValue(r *rand.Rand) any {
	switch r.IntN(22) {
	case 0:
		return nil
	case 1:
		return r.IntN(2) == 0
	case 2:
		return int(r.Uint64())
	case 3:
		return int8(r.Uint64())
	case 4:
		return int16(r.Uint64())
	case 5:
		return int32(r.Uint64())
	case 6:
		return int64(r.Uint64())
	case 7:
		return uint(r.Uint64())
	case 8:
		return uint16(r.Uint64())
	case 9:
		return r.Uint64()
	case 10:
		return (r.Float64() - 0.5) * math.Pow(10, float64(r.IntN(60)-30))
	case 11:
		return float32(r.Float64()-0.5) * float32(math.Pow(10, float64(r.IntN(30)-15)))
	case 12:
		return time.Duration(r.Int64())
	case 13:
		return time.Unix(r.Int64N(1<<33), r.Int64N(1e9)).In(time.FixedZone("", (r.IntN(48)-24)*1800))
	case 14:
		return errors.New(alike.Text(r))
	case 15:
		return []string{alike.Text(r), alike.Text(r)}
	case 16:
		return []any{r.IntN(100), alike.Text(r), nil}
	case 17:
		return map[string]any{"k" + alike.Text(r): r.IntN(10), "m": map[string]string{"a": alike.Text(r)}}
	case 18:
		return &point{X: r.IntN(10), Name: alike.Text(r), In: &point{}}
	case 19:
		return point{Map: map[string]any{"f": r.Float64()}}
	case 20:
		return json.Number(strconv.Itoa(r.IntN(1000)))
	}
	return alike.Text(r)
}

// keys may clash with what formatters write.
var keys = []string{
	"msg", "level", "time", "func", "file", "logrus_error", "error", "task_id", "user", "ü", "a\"b",
	"<", "k1", "k2", "k3",
}

// randomData has fields of logrus.
func randomData(r *rand.Rand) logrus.Fields {
	data := logrus.Fields{}
	for range r.IntN(12) {
		data[keys[r.IntN(len(keys))]] = randomValue(r)
	}
	if r.IntN(20) == 0 {
		data["func"] = func() {} // logrus leaves it out, and says so
	}
	return data
}
