package dedup

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// A token is a value in a JSON text, or the name of a field. A field is two values
// in a row, its name and its value.
type token struct {
	begin, end uint32 // of its bytes; those of a string are without the quotes
	next       uint32 // index of the token after this one and all that is in it
	n          uint32 // elements of an array, fields of an object
	strings    uint32 // strings in an array or object, at any depth, without names
	kind       tokenKind
}

type tokenKind uint8

const (
	tokenNull tokenKind = iota
	tokenFalse
	tokenTrue
	tokenInteger
	tokenFloat   // anything with a fraction or an exponent
	tokenString  // its bytes are its content
	tokenEscaped // its bytes are to be unescaped, or are not UTF-8
	tokenArray
	tokenObject
)

const (
	// maxJSON bounds the texts that are read here.
	maxJSON = 1 << 30
	// maxNumber is how long a number may be that is read here, and maxExponent the
	// digits of its exponent: none of these is too large for a float64.
	maxNumber, maxExponent = 200, 2
)

// A tokenizer cuts a JSON text into tokens, and checks its syntax. It is stricter
// than the standard in nothing but sizes: what is too long, too deep or has too large a
// number in it is left to others.
type tokenizer struct {
	data   []byte
	tokens []token
	// strings counts the strings so far, without names.
	strings uint32
	depth   int
}

// read cuts a text. It returns false for what is not one JSON value, and for one
// that is left to others.
func (z *tokenizer) read(data []byte) bool {
	if len(data) > maxJSON {
		return false
	}
	z.data, z.tokens, z.strings, z.depth = data, z.tokens[:0], 0, 0
	i := z.value(z.space(0))
	return i >= 0 && z.space(i) == len(data)
}

// mostTokens bounds what is kept between texts.
const mostTokens = 1 << 14

func (z *tokenizer) forget() {
	z.data = nil
	if cap(z.tokens) > mostTokens {
		z.tokens = nil
	}
}

// space returns the index of the first byte from i on that is no white space.
func (z *tokenizer) space(i int) int {
	for i < len(z.data) {
		switch z.data[i] {
		case ' ', '\n', '\r', '\t':
			i++
		default:
			return i
		}
	}
	return i
}

// value cuts the value that begins at i. It returns the index after it, or -1.
func (z *tokenizer) value(i int) int {
	if i >= len(z.data) {
		return -1
	}
	switch z.data[i] {
	case '{':
		return z.object(i)
	case '[':
		return z.array(i)
	case '"':
		z.strings++
		return z.text(i)
	case 't':
		return z.word(i, "true", tokenTrue)
	case 'f':
		return z.word(i, "false", tokenFalse)
	case 'n':
		return z.word(i, "null", tokenNull)
	default:
		return z.number(i)
	}
}

func (z *tokenizer) word(i int, word string, kind tokenKind) int {
	end := i + len(word)
	if end > len(z.data) || string(z.data[i:end]) != word {
		return -1
	}
	z.add(i, end, kind)
	return end
}

func (z *tokenizer) add(begin, end int, kind tokenKind) {
	z.tokens = append(z.tokens, token{begin: uint32(begin), end: uint32(end), next: uint32(len(z.tokens) + 1), kind: kind})
}

// open begins an array or object. It returns the index of its token, or -1 if it is
// nested too deep.
func (z *tokenizer) open(i int, kind tokenKind) int {
	if z.depth == maxDepth {
		return -1
	}
	z.depth++
	z.add(i, 0, kind)
	z.tokens[len(z.tokens)-1].strings = z.strings
	return len(z.tokens) - 1
}

// shut ends an array or object of n elements or fields before index i.
func (z *tokenizer) shut(open, i, n int) int {
	z.depth--
	t := &z.tokens[open]
	t.end, t.next, t.n, t.strings = uint32(i), uint32(len(z.tokens)), uint32(n), z.strings-t.strings
	return i
}

func (z *tokenizer) array(i int) int {
	open := z.open(i, tokenArray)
	if open < 0 {
		return -1
	}
	i = z.space(i + 1)
	if i < len(z.data) && z.data[i] == ']' {
		return z.shut(open, i+1, 0)
	}
	for n := 1; ; n++ {
		if i = z.value(i); i < 0 {
			return -1
		}
		i = z.space(i)
		if i == len(z.data) {
			return -1
		}
		switch z.data[i] {
		case ',':
			i = z.space(i + 1)
		case ']':
			return z.shut(open, i+1, n)
		default:
			return -1
		}
	}
}

func (z *tokenizer) object(i int) int {
	open := z.open(i, tokenObject)
	if open < 0 {
		return -1
	}
	i = z.space(i + 1)
	if i < len(z.data) && z.data[i] == '}' {
		return z.shut(open, i+1, 0)
	}
	for n := 1; ; n++ {
		if i = z.name(i); i < 0 {
			return -1
		}
		if i = z.value(i); i < 0 {
			return -1
		}
		i = z.space(i)
		if i == len(z.data) {
			return -1
		}
		switch z.data[i] {
		case ',':
			i = z.space(i + 1)
		case '}':
			return z.shut(open, i+1, n)
		default:
			return -1
		}
	}
}

// name cuts the name of a field, and returns where its value begins.
func (z *tokenizer) name(i int) int {
	if i >= len(z.data) || z.data[i] != '"' {
		return -1
	}
	if i = z.text(i); i < 0 {
		return -1
	}
	i = z.space(i)
	if i >= len(z.data) || z.data[i] != ':' {
		return -1
	}
	return z.space(i + 1)
}

// text cuts the string whose first quote is at i.
func (z *tokenizer) text(i int) int {
	begin, kind, ascii := i+1, tokenString, true
	for i = begin; ; {
		i = plain(z.data, i)
		if i >= len(z.data) {
			return -1
		}
		switch c := z.data[i]; {
		case c == '"':
			if !ascii && kind == tokenString && !utf8.Valid(z.data[begin:i]) {
				kind = tokenEscaped
			}
			z.add(begin, i, kind)
			return i + 1
		case c == '\\':
			kind = tokenEscaped
			if i = escape(z.data, i+1); i < 0 {
				return -1
			}
		case c < ' ':
			return -1
		default:
			ascii = false
			i++
		}
	}
}

// plain returns the index of the first byte from i on that is special in a string:
// a quote, a backslash, a control character, or not ASCII. It looks at eight bytes at
// a time; what borrows between them can only make it stop too early for the eight,
// which are then looked at one by one.
func plain(data []byte, i int) int {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	for i+8 <= len(data) {
		w := binary.LittleEndian.Uint64(data[i:])
		quote, backslash := w^(ones*'"'), w^(ones*'\\')
		if found := (w | (w - ones*' ') | (quote - ones) | (backslash - ones)) & tops; found != 0 {
			i += bits.TrailingZeros64(found) / 8
			break
		}
		i += 8
	}
	for i < len(data) && data[i] != '"' && data[i] != '\\' && data[i] >= ' ' && data[i] < utf8.RuneSelf {
		i++
	}
	return i
}

// escape returns the index after an escape whose backslash is before i, or -1.
func escape(data []byte, i int) int {
	if i >= len(data) {
		return -1
	}
	switch data[i] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i + 1
	case 'u':
		if i+5 > len(data) {
			return -1
		}
		for _, c := range data[i+1 : i+5] {
			if _, ok := hexDigit(c); !ok {
				return -1
			}
		}
		return i + 5
	}
	return -1
}

// number cuts a number.
func (z *tokenizer) number(i int) int {
	begin, kind := i, tokenInteger
	if z.data[i] == '-' {
		i++
	}
	switch {
	case i < len(z.data) && z.data[i] == '0':
		i++
	default:
		if i = z.digits(i); i < 0 {
			return -1
		}
	}
	if i < len(z.data) && z.data[i] == '.' {
		kind = tokenFloat
		if i = z.digits(i + 1); i < 0 {
			return -1
		}
	}
	if i < len(z.data) && z.data[i]|0x20 == 'e' {
		kind = tokenFloat
		i++
		if i < len(z.data) && (z.data[i] == '+' || z.data[i] == '-') {
			i++
		}
		exponent := i
		if i = z.digits(i); i < 0 || i-exponent > maxExponent {
			return -1
		}
	}
	if i-begin > maxNumber {
		return -1
	}
	z.add(begin, i, kind)
	return i
}

// digits returns the index after one or more digits.
func (z *tokenizer) digits(i int) int {
	begin := i
	for i < len(z.data) && z.data[i]-'0' <= 9 {
		i++
	}
	if i == begin {
		return -1
	}
	return i
}
