package wire

import (
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

func hexDigit(c byte) (rune, bool) {
	switch {
	case c-'0' <= 9:
		return rune(c - '0'), true
	case c|0x20-'a' <= 5:
		return rune(c|0x20-'a') + 10, true
	}
	return 0, false
}

// codeUnit returns the number in the escape \uXXXX that s begins with, or -1 if it begins
// with something else.
func codeUnit(s []byte) rune {
	if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
		return -1
	}
	var r rune
	for _, c := range s[2:6] {
		d, _ := hexDigit(c)
		r = r<<4 | d
	}
	return r
}

// escapes are the letters that stand for a control character after a backslash.
var escapes = [256]byte{'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// Unescape appends the content of a string to b, whose syntax was checked: escapes are
// resolved. Each byte that is not UTF-8, and each half of a surrogate pair, becomes U+FFFD.
func Unescape(b, s []byte) []byte {
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case c == '\\' && s[i+1] == 'u':
			r := codeUnit(s[i:])
			i += 6
			if utf16.IsSurrogate(r) {
				pair := utf16.DecodeRune(r, codeUnit(s[i:]))
				if pair != unicode.ReplacementChar {
					i += 6
				}
				r = pair
			}
			b = utf8.AppendRune(b, r)
		case c == '\\':
			if c = s[i+1]; escapes[c] != 0 {
				c = escapes[c]
			}
			b = append(b, c)
			i += 2
		case c < utf8.RuneSelf:
			b = append(b, c)
			i++
		default:
			r, size := utf8.DecodeRune(s[i:])
			b = utf8.AppendRune(b, r)
			i += size
		}
	}
	return b
}
