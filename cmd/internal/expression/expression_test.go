// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/spillwaylog/spillway/internal/step"
	"github.com/spillwaylog/spillway/msgpack"
)

// head is what stands before the record of an entry.
const head = "\x92\xd7\x00\x01\x02\x03\x04\x05\x06\x07\x08"

// entry is one of a JSON text.
func entry(t testing.TB, record string) []byte {
	t.Helper()
	b, _, err := msgpack.AppendFromJSONText([]byte(head), []byte(record))
	if err != nil {
		t.Fatalf("%s: %v", record, err)
	}
	return b
}

// sifter keeps what a condition holds for.
func sifter(condition string) (*step.Sifter, error) {
	r, err := step.Read([]step.Route{{Match: "**", Do: []step.Step{{Keep: condition}}, To: []string{"x"}}},
		[]string{"x"}, 64<<20, Compile)
	if err != nil {
		return nil, err
	}
	return r.For("x"), nil
}

// holds says whether a condition holds for a record, or why it fails.
func holds(t testing.TB, s *step.Sifter, entry []byte) (bool, string) {
	t.Helper()
	var out step.Sifted
	if err := s.Sift(&out, "app.web", entry, 1, 0); err != nil {
		t.Fatal(err)
	}
	if len(out.Failed) > 0 {
		return false, out.Failed[0].Reason
	}
	return len(out.Runs) == 1, ""
}

var long = strings.Repeat("x", 1000)

var top = strconv.Itoa(math.MaxInt)

var record = `{"level":"INFO","msg":"été","n":5,"m":2.5,"big":18446744073709551615,"limit":4,"ok":true,"none":null,
	"user":{"id":7,"name":"Ada"},"same":{"id":7},"items":[{"price":3,"name":"x"},{"price":8}],"tags":["a","b"],"path":"/api/v1/x",
	"mixed":[null,"x",3,[1],{"price":8}],"top":` + top + `,"bottom":` + strconv.Itoa(math.MinInt) + `,"four":4.0,
	"long":"` + long + `","a.b":"dotted","tag":"field","bytes":"1024"}`

// TestMeaning: what expressions say of a record.
func TestMeaning(t *testing.T) {
	e := entry(t, record)
	for _, yes := range []string{
		`n > limit`, `n == 5 and n > limit`, `not n < limit`, `user.id == same.id`, `(n + limit) * 2 == 18`,
		`n - limit == 1`, `n / 2 == m`, `n % 2 == 1`,
		`len(msg) == 3`, `len(items) == 2 and len(user) == 2`, `lower(level) == "info"`, `upper(user.name) == "ADA"`,
		`trim(" x ") == "x"`,
		`any(items, #.price > 5)`, `any(items, .price > 5)`, `all(items, #.price > 2) && none(items, #.price > 9)`,
		`count(items, #.price > 5) == 1`, `one(items, #.name == "x")`,
		`find(items, #.price > 5).price == 8`, `filter(items, #.price > 5)[0].price == 8`,
		`map(tags, # + "!") == ["a!", "b!"]`,
		`split(path, "/")[1] == "api"`, `split(path, "/")[-1] == "x"`, `path startsWith "/api" and path endsWith "x"`,
		`indexOf(path, "v1") == 5`,
		`(missing ?? "x") == "x" ? true : false`, `(missing ?? n) == 5`, `ok ? n > limit : false`,
		`missing ? false : true`, `let x = n + limit; x == 9`,
		`"a" in tags`, `level in ["INFO", user.name]`, `"id" in user`, `"INFO" == level`, `5 in [n, 1]`, `n in 1..9`,
		`tags == ["a", "b"]`, `user != same`,
		`int(bytes) == 1024`, `float("2.5") == m`, `string(n) == "5"`, `abs(-n) == n`, `ceil(m) == 3`, `floor(m) == 2`,
		`round(2.4) == 2`, `min(n, limit) == 4`, `max(n, m) == 5`,
		"`a.b` + \"\" == \"dotted\"", "`tag` == \"field\" and tag + \"\" == \"app.web\"", `user["na" + "me"] == "Ada"`,
		`user?.id + 0 == 7`, `path[0:4] == "/api"`,
		`big > n`, `big != 18446744073709551616.0 and len(msg) > 0`, `not (big == n)`, `n != missing`,
		`missing == none`, `user.x == none`, `n == 5.0 or len(msg) > 100`,
		`len(msg) > 100 or level == "INFO"`, `msg matches "^é" and len(msg) < 4`, `lower(level) matches "^in"`,
		`lower(level) contains "nf"`, `lower(level) not in ["x"]`,
		`!(n > 9) and not (len(tags) > 2)`, `(n > limit) and (len(msg) > 1)`, `((n)) > limit`, `n ** 2 == 25`,
		`- n < limit`, `ok and n > limit`, `not (level == limit)`,
		`top + 1 > top`, `2 * top > top`, `top * -2 < bottom`, `bottom - 2000 < bottom`, `bottom + -2000 < bottom`,
		`abs(bottom) > top`, `-bottom > top`, `-1 * bottom > top`, `bottom * -1 > top`,
		`bottom - 1 < 0 and top - -1 > 0`,
		`top + bottom == -1`, `top - 1 < top`, `bottom + 1 > bottom`, `top * -1 == bottom + 1`, `top * 0 == 0`,
		`bottom % -1 == 0`, `n - 7 == -2 and n * -3 == -15`,
		top + ` * 2 > top`, `-` + top + ` - 2 < n`,
		`float(big) > top`, `round(big) == big`, `ceil(big) == big`, `floor(big) == big`, `abs(big) == big`,
		`big / 2 > top - 2000`, `big - 1 > top`, `big + n > top`, `2 * big > big`, `-big < bottom`, `big ** 2 > big`,
		`big % 10 == 5`, `min(big, n) == n`, `four % 3 == 1`, `four % 2 == 0`, `m % 2 == 0.5`, `-m % 2 == -0.5`,
		`n / 2 % 2 == 0.5`, `n % 1.5 == 0.5`, `big % 2.0 == 0`,
		`string(1500000.0) == "1500000"`, `string(m) == "2.5"`, `string(-1e21) == "-1e+21"`, `string(four) == "4"`,
		`string(big) == "18446744073709551615"`, `string(n / 50000000) == "1e-7"`,
		`path[0] == "/" and msg[0] == "é" and msg[-1] == "é" and msg[1] == "t"`, `lower(level)[1] == "n"`,
		`msg[0:1] == "é" and msg[1:] == "té" and msg[:-1] == "ét" and msg[-2:] == "té" and msg[2:1] == ""`,
		`msg[0:9] == msg and msg[-9:2] == "ét" and msg[n:] == ""`, `indexOf(msg + "x", "x") == 3 and indexOf(msg, "x") == -1`,
		`upper(msg)[0:1] == "É" and path[ok ? 1 : 0:4] == "api"`, `tags[0:1] == ["a"] and tags[1:][0] == "b"`,
		`split(path, "/")[1:][0] == "api" and (1..5)[2] == 3 and (1..5)[1:2] == [2]`, `tags[n / 5] == "b"`,
		`long[0:3] == "xxx" and long[-1] == "x" and long[999:] == "x" and len(long[1:1e9]) == 999 and msg[-3:-2] == "é"`,
		`msg[2] == "é" and msg[0:2] == "ét" and msg[1:-1] == "t" and msg[3:] == "" and msg[-2:3] == "té" and "é"[-1:] == "é"`,
		`count(1..200, long[0] == "x" and long[0:2] == "xx") == 200`, `"\xff\xc3é"[1:3] == "\xc3é"`,
		`any(mixed, #.price > 5)`, `count(mixed, #.price == nil) == 4`, `find(mixed, #.price > 5).price.x.y == nil`,
		`map(tags, #.x) == [nil, nil]`, `split(path, "/").x == nil`, `user["x"].y == nil`, `user[missing] == nil`,
		`find(items, #.price > 99)?.names?.[0] == nil`, `find(items, #.price > 5)?.price == 8`, `missing?.[0] == nil`,
		`all(filter(mixed, #.price == nil), # != 8)`, `any([true, false], #)`, `[true, n][1] == 5 and [1, 2][-1] == 2`,
		`len(1..m) == 2`, `len(max(n, 1e8)..max(n, 1e8) + 1) == 2`, `count(mixed[1:], true) == 4`,
		`"\xc3\xa9t\303\251" + "" == msg`, `len("\xff") == 1 and "\xff" + "" != "ÿ"`,
		`'\"' + "" == "\""`, `'\'' + "é" == "'é"`,
		`"a\"" + 'b\"\\' == "a\"b\"\\"`, `user["n\x61me"] + "" == "Ada" and len("\u00e9") == 1`,
		`60 * 60 * 24 / 2 - n == 43195`, `2 ** 3 ^ 1 == 8`,
	} {
		s, err := sifter(yes)
		if err != nil {
			t.Errorf("%s: %v", yes, err)
			continue
		}
		if ok, why := holds(t, s, e); !ok {
			t.Errorf("%s does not hold: %s", yes, why)
		}
	}
	for _, no := range []string{
		`n > missing`, `missing > n`, `n < level`, `level > n`, `n < tags`, `user.name in [1, n]`, `n in none`,
		`tags contains "a" or len(msg) > 9`, `items == tags`,
		`missing in [n]`, `n ? true : false`, `level ? true : false`, `any(tags, #)`, `n matches "5" and len(msg) > 0`,
	} {
		s, err := sifter(no)
		if err != nil {
			t.Errorf("%s: %v", no, err)
			continue
		}
		if ok, why := holds(t, s, e); ok || why != "" {
			t.Errorf("%s holds, %s", no, why)
		}
	}
}

// goTypes are words of Go that no message has.
var goTypes = regexp.MustCompile(`reflect|interface|float64|\bu?int\d*( [^h]|$)|string \*|\[\]\w|<nil>`)

// TestFails: an expression that has nothing to work on fails, and so does one that would take too
// long or too much: the event is a dead letter, with a reason that shows nothing of it.
func TestFails(t *testing.T) {
	long := fmt.Sprintf(`{"secret":%q,"n":1,"list":[%s0],"much":[%s0]}`, strings.Repeat("HIDDEN ", 100_000),
		strings.Repeat("1,", 9000), strings.Repeat("1,", 10_000))
	e := entry(t, long)
	for condition, want := range map[string]string{
		`len(missing) > 3`:           "len has no use for nil",
		`lower(n) == "x"`:            "lower has no use for a number",
		`secret * 2 > n`:             "* has no use for a text and a number",
		`secret + n == 3`:            "+ has no use for a text and a number",
		`int(secret) > 3`:            "int has no use for a text",
		`missing.x[0] == n`:          "[] has no use for nil and a number",
		`any(n, #.x > 1)`:            "any has no use for a number",
		`count(missing, true) == n`:  "count has no use for nil",
		`map(secret, #) == n`:        "map has no use for a text",
		`any(list, #[0] == 1)`:       "[] has no use for a number and a number",
		`secret[7000000] == "x"`:     "index 7000000 of 700000 is out of range",
		`missing[0:2] == n`:          "[:] has no use for nil",
		`list[-9002] == n`:           "index -9002 of 9001 is out of range",
		`list[secret[0:n]] + 1 == n`: "+ has no use for nil and a number",
		`secret[missing:] == n`:      "[:] has no use for nil", `1 in missing..n`: ".. has no use for nil",
		`n in 0..` + top:       ".. has no use for " + top,
		`n in -` + top + `..n`: ".. has no use for -" + top, `n in 1..max(n, 1e99)`: "memory budget",
		`filter(list, # > 5)[0] == n`:    "index 0 of 0 is out of range",
		`list[missing] == n`:             "[] has no use for nil",
		`any(list, secret[-1] == "x")`:   "it would take too long",
		`any(list, secret[-2:1] == "x")`: "it would take too long",
		`"é"[n] == "x"`:                  "index 1 of 1 is out of range",
		`"é"[-2] == "x" or n > 2`:        "index -2 of 1 is out of range",
		`-secret == n`:                   "- has no use for a text", `abs(secret) == n`: "abs has no use for a text",
		`n - list == n`:                          "- has no use for a number and a list",
		`n % missing == n`:                       "% has no use for a number and nil",
		`n % 0.0 == n`:                           "% has no use for 0 as the divisor",
		`n % 0 == n`:                             "% has no use for 0 as the divisor",
		`list[9999999] == n`:                     "index 9999999 of 9001 is out of range",
		`len(much) > n`:                          "more than 10,000 values",
		`any(list, any(list, any(list, # > 5)))`: "it would take too long",
		`any(list, secret contains "HIDDENX")`:   "it would take too long",
		`any(list, secret matches "HIDDENX")`:    "it would take too long",
		`any(list, lower(secret) == "")`:         "it would take too long",
		`len(map(list, secret + secret)) > n`:    "it would take too long",
		`any(list, len(split(secret, "D")) < n)`: "it would take too long",
		`len(1..n * 100000) > 5`:                 "memory budget exceeded",
		`let a = secret + secret; let b = a + a; let c = b + b; let d = c + c; let e = d + d; let f = e + e; let g = f + f; len(g + g) > 5`: "it would take too long",
		`any(list, list == much)`:                 "more than 10,000 values",
		`any(list, len(filter(list, true)) == 3)`: "memory budget exceeded",
	} {
		s, err := sifter(condition)
		if err != nil {
			t.Errorf("%s: %v", condition, err)
			continue
		}
		ok, why := holds(t, s, e)
		if ok || !strings.HasPrefix(why, "keep: ") || !strings.Contains(why, want) || strings.Contains(why, "HIDDEN") ||
			strings.Contains(why, "\n") || goTypes.MatchString(why) {
			t.Errorf("%s: %.200s, want %s", condition, why, want)
		}
		if ok, why := holds(t, s, e); ok || why == "" {
			t.Errorf("%s: the second time it is %s", condition, why)
		}
	}
}

// TestLazy: a comparison decides first, and the expression beside it is not looked at; only what it
// names is decoded.
func TestLazy(t *testing.T) {
	e := entry(t, fmt.Sprintf(`{"level":"INFO","msg":"x","much":[%s0]}`, strings.Repeat("1,", 10_000)))
	for condition, want := range map[string]bool{
		`level == "DEBUG" and len(much) > 3`: false, `level == "INFO" or len(much) > 3`: true, `len(msg) == 1`: true,
	} {
		s, err := sifter(condition)
		if err != nil {
			t.Fatal(err)
		}
		if ok, why := holds(t, s, e); ok != want || why != "" {
			t.Errorf("%s: %v %s", condition, ok, why)
		}
	}
}

// TestRefused: what is no expression is told when it is read, at its place.
func TestRefused(t *testing.T) {
	for text, at := range map[string]int{
		`len(é) + now() > 3`: 10, `sum(x) > 3`: 0, `env("x") == y`: 0, `reduce(x, #acc + #) > 3`: 0, `x matches y`: 10,
		`len(x) > "a"`: 7, `lower(5) == x`: 6,
		`a-b > c`: 1, `a/b > c`: 1, `$env == x`: 0, `not a == b`: 0, `x.y() > 3`: 2, `len(x)`: 0, `len(x) > 3; x`: -1,
		`repeat("x", n) == y`: 0, `len(x) > 3 // or so`: 11,
		`{"a": x}.a == y`: 0, `b"x" == y + ""`: 0, `count(x) > 3`: 0, `x matches "(" and y`: 10, "len(x)\u00a0> 3": 6,
		`timezone(x) == y`: 0, strings.Repeat("a+", 3000) + "1>2": maxText,
		"(" + strings.Repeat("a + ", 900) + "1) > 2": -1, `toJSON(x) == y`: 0, `keys(x)[0] == y`: 0,
		`x |  lower() == y + now()`: 20, `any(x, {# > 1; # > 2})`: -1, `lower(x) == 5`: 9, `1 + x % "a" > 2`: 8,
		`1 + len(x)[0] > 2`: 4, `len(x)[0:1] == y`: 0, `x["a":] == y`: 2, `any(len(x), #)`: 4,
		`any(x, lower(y))`: 7, `lower(x) ? y : z`: 0, `x + "\u{e9}" == y`: 4, `x + '\?' == y`: -1, `x + "\'" == y`: -1,
	} {
		_, err := Compile(text)
		f := (*step.Fault)(nil)
		if !errors.As(err, &f) || f.Text == "" || goTypes.MatchString(f.Text) ||
			at >= 0 && f.At != at || f.At < 0 || f.At > len(text) {
			t.Errorf("%.40s: %+v, want it at %d", text, err, at)
		}
	}
}

// TestAllocs: an expression allocates twice a field that it names at most.
func TestAllocs(t *testing.T) {
	e := entry(t, record)
	for condition, fields := range map[string]float64{
		`n > limit`: 2, `user.id == same.id`: 2, `len(msg) > 100`: 1, `level == "INFO" and len(long) > 100`: 1,
		`any(tags, # == level)`: 4, `path startsWith tag`: 2, `n + limit * 2 > m`: 3,
		`level == msg or level == path`: 3, `n == 5 and n > limit`: 2, `ok ? n > limit : m > limit`: 4,
	} {
		s, err := sifter(condition)
		if err != nil {
			t.Fatal(err)
		}
		var out step.Sifted
		if n := testing.AllocsPerRun(100, func() { _ = s.Sift(&out, "app.web", e, 1, 0) }); n > 2*fields &&
			!raceEnabled {
			t.Errorf("%s: %v allocations for %v fields", condition, n, fields)
		}
	}
}

// BenchmarkCondition is what a condition costs an event of ten fields and 450 bytes: a comparison,
// and expressions.
func BenchmarkCondition(b *testing.B) {
	var entries []byte
	const events = 1000
	for i := range events {
		entries = append(entries, entry(b, fmt.Sprintf(`{"level":"INFO","msg":"request %s","host":"web-17.example.org","path":"/api/v1/orders/17/items?%s","trace":"4bf92f3577b34da6a3ce929d0e0e4736",
			"agent":"Mozilla/5.0 (X11; Linux x86_64)","status":200,"bytes":%d,"limit":123456,"user":{"id":"u-123456","email":"somebody@example.org"}}`,
			strings.Repeat("served ", 12), strings.Repeat("q=x&", 16), 100_000+i))...)
	}
	for name, condition := range map[string]string{
		"comparison":   `level == "DEBUG"`,
		"two fields":   `bytes > limit`,
		"arithmetic":   `bytes * 2 > limit + 1000`,
		"length":       `len(msg) > 100`,
		"lower":        `lower(level) == "debug"`,
		"both":         `level == "INFO" and len(msg) > 100`,
		"beside":       `level == "DEBUG" and len(msg) > 100`,
		"starts with":  `path startsWith "/admin"`,
		"conditional":  `status >= 500 ? len(msg) > 10 : bytes > limit`,
		"map and list": `user.id in ["u-1", host]`,
	} {
		b.Run(name, func(b *testing.B) {
			s, err := sifter(condition)
			if err != nil {
				b.Fatal(err)
			}
			var into step.Sifted
			b.ReportAllocs()
			for b.Loop() {
				if err := s.Sift(&into, "app.web", entries, 1, 0); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/events, "ns/event")
		})
	}
}
