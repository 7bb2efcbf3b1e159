// SPDX-License-Identifier: Apache-2.0

package spillwaylogrus

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
)

// random prints its seed, which SPILLWAY_SEED repeats.
func random(t *testing.T) *rand.Rand {
	seed := rand.Uint64()
	if text := os.Getenv("SPILLWAY_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("SPILLWAY_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

type point struct {
	X    int            `json:"x"`
	Name string         `json:"name,omitempty"`
	In   *point         `json:"in,omitempty"`
	Map  map[string]any `json:"map"`
}

// texts are what strings are made of.
var texts = []string{"a", "ü", "日本", "\n", "\"", "\\", "<b>", "&", "\u2028", "\x00", "\x7f", "\xff", "\b\f\r\t", " ", "fields.", "€\xe2\x82"}

func randomText(r *rand.Rand) string {
	var b strings.Builder
	for range r.IntN(6) {
		b.WriteString(texts[r.IntN(len(texts))])
	}
	return b.String()
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
		return errors.New(randomText(r))
	case 15:
		return []string{randomText(r), randomText(r)}
	case 16:
		return []any{r.IntN(100), randomText(r), nil}
	case 17:
		return map[string]any{"k" + randomText(r): r.IntN(10), "m": map[string]string{"a": randomText(r)}}
	case 18:
		return &point{X: r.IntN(10), Name: randomText(r), In: &point{}}
	case 19:
		return point{Map: map[string]any{"f": r.Float64()}}
	case 20:
		return json.Number(strconv.Itoa(r.IntN(1000)))
	}
	return randomText(r)
}

// keys may clash with what formatters write.
var keys = []string{"msg", "level", "time", "func", "file", "logrus_error", "error", "task_id", "user", "ü", "a\"b", "<", "k1", "k2", "k3"}

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

// decode reads a line; numbers are equal if they read as the same integer or float.
func decode(t *testing.T, line []byte) map[string]any {
	t.Helper()
	var m map[string]any
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.UseNumber()
	if err := dec.Decode(&m); err != nil {
		t.Fatalf("%v: %s", err, line)
	}
	return normal(m).(map[string]any)
}

func normal(v any) any {
	switch x := v.(type) {
	case json.Number:
		if _, err := strconv.ParseInt(x.String(), 10, 64); err == nil {
			return "number " + x.String()
		}
		if _, err := strconv.ParseUint(x.String(), 10, 64); err == nil {
			return "number " + x.String()
		}
		f, _ := x.Float64()
		return "number " + strconv.FormatFloat(f, 'g', -1, 64)
	case map[string]any:
		for k := range x {
			x[k] = normal(x[k])
		}
	case []any:
		for i := range x {
			x[i] = normal(x[i])
		}
	}
	return v
}

// same compares what two lines say.
func same(t *testing.T, got, want map[string]any, about ...any) {
	t.Helper()
	if reflect.DeepEqual(got, want) {
		return
	}
	for k := range want {
		if !reflect.DeepEqual(got[k], want[k]) {
			t.Errorf("%q: got %#v, want %#v", k, got[k], want[k])
		}
	}
	for k := range got {
		if _, ok := want[k]; !ok {
			t.Errorf("%q: %#v is too much", k, got[k])
		}
	}
	t.Fatal(fmt.Sprint(about...))
}
