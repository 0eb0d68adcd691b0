package wire

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"unicode/utf8"
)

// A Token is a value in a JSON text, or the name of a field. A field is two tokens, its name
// and its value, each with the tokens in it.
type Token struct {
	Begin, End uint32 // of its bytes; those of a string are without the quotes
	Next       uint32 // index of the token after this one and all tokens in it
	N          uint32 // elements of an array, fields of an object
	Strings    uint32 // strings in an array or object, at any depth, without names
	Kind       TokenKind
	Closed     bool   // its insides were not cut: see [Tokens.Known]
	Shape      uint16 // of an array or object that is not empty: see [Tokens.Field]
}

// IsText reports whether the token is a string.
func (t *Token) IsText() bool { return t.Kind == String || t.Kind == Escaped }

// TokenKind is the type of a JSON value.
type TokenKind uint8

// The kinds of tokens.
const (
	Null TokenKind = iota
	False
	True
	Integer
	Float   // a number with a fraction or an exponent
	String  // the bytes are the content
	Escaped // a string with escapes, or not in UTF-8: see [Unescape]
	Array
	Object
)

const (
	// MaxJSON is the size, in bytes, and MaxDepth the nesting of the largest text that Read
	// accepts.
	MaxJSON  = 1 << 30
	MaxDepth = 100
	// maxNumber bounds the length of a number, and maxExponent the digits of its exponent:
	// every such number fits into a float64.
	maxNumber, maxExponent = 200, 2
	// leastTokens is room for the first text, and retainedTokens bounds the memory that is
	// kept between texts.
	leastTokens    = 1 << 8
	retainedTokens = 1 << 14
)

// Tokens cuts a JSON text into tokens and checks its syntax. It accepts every text that the
// standard accepts, except texts, depths and numbers that are too large.
type Tokens struct {
	All []Token
	// Known, if it is not nil, is called with the index at which an array or object begins, and
	// with its shape. If it returns the index after that, because its bytes are those of one that
	// was cut in this shape before, the token is closed: see Open.
	Known func(data []byte, i int, shape uint16) int
	// Field, if it is not nil, says which fields are read of objects that have a shape, a number
	// other than 0: it returns the shape of the value of a field, and whether the field is read.
	// One that is not leaves no tokens: the syntax of its value is checked, and nothing else. Root is
	// the shape of the text. The elements of an array have the shape of the array. Nothing is left out
	// of a value of the shape 0, nor of the value of a field whose name has an escape.
	Field func(shape uint16, name []byte) (value uint16, reads bool)
	Root  uint16

	data    []byte
	strings uint32 // so far, without names
	depth   int
	asked   int // index of a value for which Known is not called
}

// Read cuts a text. It returns false for a text that is not one JSON value, or too large.
func (z *Tokens) Read(data []byte) bool {
	if len(data) > MaxJSON {
		return false
	}
	z.data, z.All, z.strings, z.depth = data, z.All[:0], 0, 0
	z.asked = Space(data, 0)
	i := z.value(z.asked, z.Root)
	return i >= 0 && Space(data, i) == len(data)
}

// Text returns the text.
func (z *Tokens) Text() []byte { return z.data }

// Forget drops the text, and the tokens if they are many.
func (z *Tokens) Forget() {
	z.data = nil
	if cap(z.All) > retainedTokens {
		z.All = nil
	}
}

// Open returns the index of a token like the one at i that is not closed. All may grow.
func (z *Tokens) Open(i uint32) uint32 {
	t := z.All[i]
	if !t.Closed {
		return i
	}
	opened := uint32(len(z.All))
	z.depth, z.asked = -int(t.End-t.Begin), int(t.Begin) // of any depth: the value is valid
	z.value(z.asked, t.Shape)
	return opened
}

// value cuts the value that begins at i and has a shape.
func (z *Tokens) value(i int, shape uint16) int {
	if i >= len(z.data) {
		return -1
	}
	switch z.data[i] {
	case '{':
		return z.nested(i, Object, '}', shape)
	case '[':
		return z.nested(i, Array, ']', shape)
	case '"':
		z.strings++
		return z.text(i)
	case 't':
		return z.word(i, "true", True)
	case 'f':
		return z.word(i, "false", False)
	case 'n':
		return z.word(i, "null", Null)
	default:
		return z.number(i)
	}
}

func (z *Tokens) word(i int, word string, kind TokenKind) int {
	end := z.wordEnd(i, word)
	if end > 0 {
		z.add(i, end, kind)
	}
	return end
}

// wordEnd returns the index after a word at i, or -1 if it is not there.
func (z *Tokens) wordEnd(i int, word string) int {
	end := i + len(word)
	if end > len(z.data) || string(z.data[i:end]) != word {
		return -1
	}
	return end
}

func (z *Tokens) add(begin, end int, kind TokenKind) {
	n := len(z.All)
	if n == cap(z.All) {
		z.All = slices.Grow(z.All, max(n, leastTokens))
	}
	z.All = z.All[:n+1]
	t := &z.All[n]
	t.Begin, t.End, t.Next, t.Kind = uint32(begin), uint32(end), uint32(n+1), kind
	t.N, t.Strings, t.Closed = 0, 0, false
}

// nested cuts an array or object, which ends with the given bracket.
func (z *Tokens) nested(i int, kind TokenKind, bracket byte, shape uint16) int {
	if z.depth == MaxDepth {
		return -1
	}
	if i+1 < len(z.data) && z.data[i+1] == bracket {
		z.add(i, i+2, kind)
		return i + 2
	}
	if z.Known != nil && i != z.asked {
		if end := z.Known(z.data, i, shape); end > 0 {
			z.add(i, end, kind)
			t := &z.All[len(z.All)-1]
			t.Closed, t.Shape = true, shape
			return end
		}
	}
	z.depth++
	token, before := len(z.All), z.strings
	z.add(i, 0, kind)
	n, first := 0, true
	for i = Space(z.data, i+1); i < len(z.data); i = Space(z.data, i+1) {
		if first && z.data[i] == bracket {
			break
		}
		first = false
		inside, reads := shape, true
		if kind == Object {
			inside, reads, i = z.field(i, shape)
		}
		switch {
		case i < 0:
		case reads:
			i = z.value(i, inside)
			n++
		default:
			i = z.skip(i)
		}
		if i < 0 {
			return -1
		}
		i = Space(z.data, i)
		if i == len(z.data) || z.data[i] != ',' {
			break
		}
	}
	if i >= len(z.data) || z.data[i] != bracket {
		return -1
	}
	z.depth--
	t := &z.All[token]
	t.End, t.Next, t.N, t.Strings = uint32(i+1), uint32(len(z.All)), uint32(n), z.strings-before
	t.Shape = shape
	return i + 1
}

// field cuts the name of a field of an object of a shape, unless the field is not read. It returns
// the shape of the value, and where that begins.
func (z *Tokens) field(i int, shape uint16) (value uint16, reads bool, next int) {
	at := len(z.All)
	next = z.name(i)
	if shape == 0 || next < 0 {
		return 0, true, next
	}
	name := &z.All[at]
	if name.Kind != String {
		return 0, true, next
	}
	if value, reads = z.Field(shape, z.data[name.Begin:name.End]); !reads {
		z.All = z.All[:at]
	}
	return value, reads, next
}

// name cuts the name of a field, and returns where its value begins.
func (z *Tokens) name(i int) int {
	if z.data[i] != '"' {
		return -1
	}
	if i = z.text(i); i < 0 {
		return -1
	}
	i = Space(z.data, i)
	if i == len(z.data) || z.data[i] != ':' {
		return -1
	}
	return Space(z.data, i+1)
}

// text cuts the string whose first quote is at i.
func (z *Tokens) text(i int) int {
	end := plain(z.data, i+1)
	if end < len(z.data) && z.data[end] == '"' {
		z.add(i+1, end, String)
		return end + 1
	}
	return z.special(i+1, end)
}

// special cuts the string that begins at begin, which is plain up to i.
func (z *Tokens) special(begin, i int) int {
	kind, ascii := String, true
	for ; ; i = plain(z.data, i) {
		if i >= len(z.data) {
			return -1
		}
		switch c := z.data[i]; {
		case c == '"':
			if !ascii && kind == String && !utf8.Valid(z.data[begin:i]) {
				kind = Escaped
			}
			z.add(begin, i, kind)
			return i + 1
		case c == '\\':
			kind = Escaped
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

// plain returns the index of the first byte from i on that is special in a string: a quote,
// a backslash, a control character, or not ASCII. It looks at eight bytes at a time. A borrow
// between them can only make it stop too early; then the bytes are looked at one by one.
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
	for i < len(data) && data[i] != '"' && data[i] != '\\' && data[i] >= ' ' &&
		data[i] < utf8.RuneSelf {
		i++
	}
	return i
}

// escape returns the index after an escape whose backslash is before i.
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

func (z *Tokens) number(i int) int {
	end, kind := z.numberEnd(i)
	if end > 0 {
		z.add(i, end, kind)
	}
	return end
}

// numberEnd returns the index after the number that begins at i, or -1, and its kind.
func (z *Tokens) numberEnd(i int) (int, TokenKind) {
	begin, kind := i, Integer
	if z.data[i] == '-' {
		i++
	}
	if i < len(z.data) && z.data[i] == '0' {
		i++
	} else if i = z.digits(i); i < 0 {
		return -1, kind
	}
	if i < len(z.data) && z.data[i] == '.' {
		kind = Float
		if i = z.digits(i + 1); i < 0 {
			return -1, kind
		}
	}
	if i < len(z.data) && z.data[i]|0x20 == 'e' {
		kind = Float
		i++
		if i < len(z.data) && (z.data[i] == '+' || z.data[i] == '-') {
			i++
		}
		exponent := i
		if i = z.digits(i); i < 0 || i-exponent > maxExponent {
			return -1, kind
		}
	}
	if i-begin > maxNumber {
		return -1, kind
	}
	return i, kind
}

func (z *Tokens) digits(i int) int {
	begin := i
	for i < len(z.data) && z.data[i]-'0' <= 9 {
		i++
	}
	if i == begin {
		return -1
	}
	return i
}
