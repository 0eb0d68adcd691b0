package wire

import "bytes"

// Space returns the index of the first byte from i on that is not white space.
func Space(text []byte, i int) int {
	const space = 1<<' ' | 1<<'\n' | 1<<'\r' | 1<<'\t'
	for i < len(text) && text[i] <= ' ' && uint64(space)>>text[i]&1 != 0 {
		i++
	}
	return i
}

// Brackets finds the end of an object, an array or a string by its brackets and quotes. It
// continues where the text given before ended, if the value was cut off there. The zero
// value is ready.
type Brackets struct {
	depth    int
	inString bool
	escaped  bool
}

// End returns the index after the value that begins at i, or continues there. It returns -1
// if the value does not end in the text, or is of another kind.
func (b *Brackets) End(text []byte, i int) int {
	depth := b.depth
	for ; i < len(text); i++ {
		if !b.inString {
			switch text[i] {
			case '{', '[':
				depth++
				continue
			case '}', ']':
				depth--
			case '"':
				b.inString = true
				continue
			default:
				if depth == 0 {
					return -1
				}
				continue
			}
		} else if i = b.leaveString(text, i); i == len(text) {
			break
		}
		if depth > 0 {
			continue
		}
		if depth < 0 {
			return -1 // a bracket that closes nothing
		}
		*b = Brackets{}
		return i + 1
	}
	b.depth = depth
	return -1
}

// leaveString returns the index of the quote that ends the string in which i is, or the
// length of the text.
func (b *Brackets) leaveString(text []byte, i int) int {
	if b.escaped && i < len(text) {
		b.escaped = false
		i++
	}
	for {
		n := bytes.IndexByte(text[i:], '"')
		end := i + n
		if n < 0 {
			end = len(text)
		}
		backslashes := 0
		for end-1-backslashes >= i && text[end-1-backslashes] == '\\' {
			backslashes++
		}
		if n < 0 {
			b.escaped = backslashes%2 == 1
			return end
		}
		if backslashes%2 == 0 {
			b.inString = false
			return end
		}
		i = end + 1
	}
}

// ValueEnd returns the index after the object, array or string that begins at i.
func ValueEnd(text []byte, i int) int {
	var b Brackets
	return b.End(text, i)
}

// Fields calls read with the name of each field of the object in the text, quotes included, and
// with the index of its value. read returns the index after the value. Fields returns the index
// of the bracket that ends the object. It refuses names with an escape: they may mean any name.
func Fields(text []byte, read func(name []byte, i int) int) int {
	i := Space(text, 0)
	if i == len(text) || text[i] != '{' {
		return -1
	}
	for {
		begin := Space(text, i+1)
		if begin == len(text) || text[begin] != '"' {
			return -1
		}
		if i = ValueEnd(text, begin); i < 0 {
			return -1
		}
		name := text[begin:i]
		i = Space(text, i)
		if i == len(text) || text[i] != ':' || bytes.IndexByte(name, '\\') >= 0 {
			return -1
		}
		if i = Space(text, i+1); i == len(text) {
			return -1
		}
		if i = read(name, i); i < 0 {
			return -1
		}
		if i = Space(text, i); i == len(text) || text[i] != ',' {
			break
		}
	}
	if i == len(text) || text[i] != '}' {
		return -1
	}
	return i
}
