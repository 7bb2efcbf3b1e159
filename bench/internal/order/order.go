// SPDX-License-Identifier: Apache-2.0

// Package order has what daichirata's benchmark posts.
package order

// An Order is a struct of 26 fields, as in daichirata's benchmark: a to z, one short text each.
type Order struct {
	A string `json:"a" msg:"a"`
	B string `json:"b" msg:"b"`
	C string `json:"c" msg:"c"`
	D string `json:"d" msg:"d"`
	E string `json:"e" msg:"e"`
	F string `json:"f" msg:"f"`
	G string `json:"g" msg:"g"`
	H string `json:"h" msg:"h"`
	I string `json:"i" msg:"i"`
	J string `json:"j" msg:"j"`
	K string `json:"k" msg:"k"`
	L string `json:"l" msg:"l"`
	M string `json:"m" msg:"m"`
	N string `json:"n" msg:"n"`
	O string `json:"o" msg:"o"`
	P string `json:"p" msg:"p"`
	Q string `json:"q" msg:"q"`
	R string `json:"r" msg:"r"`
	S string `json:"s" msg:"s"`
	T string `json:"t" msg:"t"`
	U string `json:"u" msg:"u"`
	V string `json:"v" msg:"v"`
	W string `json:"w" msg:"w"`
	X string `json:"x" msg:"x"`
	Y string `json:"y" msg:"y"`
	Z string `json:"z" msg:"z"`
}

// texts keep the compiler from making one order for all.
var texts = [...]string{"test", "text"}

// New has a text in every field.
func New(i int) Order {
	return Order{
		texts[i%len(texts)], "test", "test", "test", "test", "test", "test", "test", "test", "test", "test", "test",
		"test",
		"test", "test", "test", "test", "test", "test", "test", "test", "test", "test", "test", "test", "test",
	}
}

// NewMap is the same as a map, made anew as a caller's literal is.
func NewMap() map[string]any {
	return map[string]any{
		"a": "test", "b": "test", "c": "test", "d": "test", "e": "test", "f": "test", "g": "test", "h": "test",
		"i": "test",
		"j": "test", "k": "test", "l": "test", "m": "test", "n": "test", "o": "test", "p": "test", "q": "test",
		"r": "test",
		"s": "test", "t": "test", "u": "test", "v": "test", "w": "test", "x": "test", "y": "test", "z": "test",
	}
}
