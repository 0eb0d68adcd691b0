package wire

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

var texts = []string{
	`{"a":[1,-2.5e3,true,null,"x"],"b":{"c":"\"}]\\"}}`, `[]`, ` {"a" : {} } `, `{"a":1,}`, `[1 2]`,
	`"\u00e9\n"`, `"\x"`, `{"a":"`, `nul`, `01`, "\"\xff\"", `{"a":"\\`, `1e-5`, `{`, `[[`, `{"a"}`,
}

// FuzzTokens compares the verdict with that of encoding/json.
func FuzzTokens(f *testing.F) {
	for _, text := range texts {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var z Tokens
		limited := len(data) > maxNumber || strings.ContainsAny(string(data), "eE")
		if got := z.Read(data); got != json.Valid(data) && (got || !limited) {
			t.Errorf("%q: read %v", data, got)
		}
	})
}

// FuzzBrackets finds the end of values in texts that come whole, and byte by byte.
func FuzzBrackets(f *testing.F) {
	for _, text := range texts {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		whole := ValueEnd(data, 0)
		var b Brackets
		end, i := -1, 0
		for n := 1; n <= len(data) && end < 0; n++ {
			end, i = b.End(data[:n], i), n
			if n == 1 && !strings.ContainsAny(string(data[:1]), `{["`) {
				break // not a value that has an end here
			}
		}
		if end != whole && strings.ContainsAny(string(data[:min(1, len(data))]), `{["`) {
			t.Errorf("%q: the value ends at %d, in pieces at %d", data, whole, end)
		}
		var value json.RawMessage
		if whole > 0 && json.Unmarshal(data[:whole], &value) == nil && len(value) != whole {
			t.Errorf("%q ends at %d", data, whole)
		}
	})
}

// TestNoValue looks for the end of texts that begin no object, array or string.
func TestNoValue(t *testing.T) {
	for _, text := range []string{"", "]", "}", "]}", "1", "null", ",", ":"} {
		if end := ValueEnd([]byte(text), 0); end >= 0 {
			t.Errorf("%q: a value ends at %d", text, end)
		}
	}
}

// FuzzClosedTokens cuts texts whose inner arrays and objects are known, and opens all of them:
// the tokens then have the same bytes as if none were known.
func FuzzClosedTokens(f *testing.F) {
	for _, text := range texts {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var whole Tokens
		if !whole.Read(data) {
			return
		}
		closed := Tokens{Known: func(data []byte, i int, _ uint16) int { return ValueEnd(data, i) }}
		if !closed.Read(data) {
			t.Fatalf("%q is refused where parts are known", data)
		}
		want, got := spans(&whole, 0, nil), spans(&closed, 0, nil)
		if !slices.Equal(want, got) {
			t.Errorf("%q: tokens %v, where parts are known %v", data, want, got)
		}
	})
}

// spans appends the token at i and those in it, with closed ones opened.
func spans(z *Tokens, i uint32, all []Token) []Token {
	i = z.Open(i)
	t := z.All[i]
	all = append(all, Token{Begin: t.Begin, End: t.End, N: t.N, Kind: t.Kind})
	if t.Kind == Array || t.Kind == Object {
		for k := i + 1; k < z.All[i].Next; k = z.All[k].Next {
			all = spans(z, k, all)
		}
	}
	return all
}
