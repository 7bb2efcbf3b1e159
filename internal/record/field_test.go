// SPDX-License-Identifier: Apache-2.0

package record

import (
	"encoding/json"
	"reflect"
	"testing"
)

// Types that embed each other, hide each other's names and are not exported: what reflect.StructOf
// cannot make.
type (
	Base struct {
		ID   int
		Name string `json:",omitempty"`
	}
	base struct {
		ID    int
		Lower string
	}
	plain    int
	Plain    int
	Named    struct{ Base }
	pointers struct {
		*Base
		*base
	}
	conflict struct {
		Base
		base
	}
	tagged struct {
		Base
		X struct {
			A int
		} `json:"ID"`
	}
	tagWins struct {
		First
		Second
	}
	First  struct{ V int }
	Second struct {
		W int `json:"V"`
	}
	deeper struct {
		one
		ID string
	}
	one   struct{ two }
	two   struct{ Base }
	twice struct {
		left
		right
	}
	left    struct{ Base }
	right   struct{ Base }
	through struct {
		Named
		*left
		Base
	}
	kinds struct {
		plain
		Plain
		*Tall
		*Small
		any
		Other any
	}
	Tall  int
	Small int
	renam struct {
		Base `json:"base"`
	}
	ignore struct {
		Base `json:"-"`
		Own  int
	}
	option struct {
		Base `json:",omitempty"`
		Own  int
	}
	self struct {
		*self
		Value int
	}
	ring1 struct {
		*ring2
		A int
	}
	ring2 struct {
		*ring1
		B int
	}
	annihilated struct {
		twice
		ID int
	}
)

// The fields, their order and their values are those of encoding/json, character by character.
func TestFields(t *testing.T) {
	for _, v := range []any{
		Base{1, "a"},
		Named{Base{1, "a"}},
		pointers{},
		pointers{&Base{1, "a"}, nil},
		pointers{nil, &base{2, "b"}},
		pointers{&Base{1, "a"}, &base{2, "b"}},
		conflict{Base{1, "a"}, base{2, "b"}},
		tagged{Base: Base{1, "a"}},
		tagWins{First{1}, Second{2}},
		deeper{one{two{Base{1, "a"}}}, "x"},
		twice{left{Base{1, "a"}}, right{Base{2, "b"}}},
		through{Named{Base{1, "a"}}, &left{Base{2, "b"}}, Base{3, "c"}},
		through{},
		kinds{1, 2, ptr(Tall(3)), nil, 5, 6},
		renam{Base{1, "a"}},
		ignore{Base{1, "a"}, 2},
		option{Base{1, "a"}, 2},
		option{},
		self{nil, 1},
		self{&self{nil, 2}, 1},
		ring1{&ring2{&ring1{nil, 3}, 2}, 1},
		ring1{},
		annihilated{twice{left{Base{1, "a"}}, right{Base{2, "b"}}}, 3},
	} {
		p := reflect.New(reflect.TypeOf(v))
		p.Elem().Set(reflect.ValueOf(v))
		for _, v := range []any{v, p.Interface()} {
			want, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			if got := valueJSON(t, v); got != string(want) {
				t.Errorf("%T:\n got %s\nwant %s", v, got, want)
			}
		}
	}
}
