package wire

// skip returns the index after the value that begins at i, or -1, as value does, without tokens.
func (z *Tokens) skip(i int) int {
	if i >= len(z.data) {
		return -1
	}
	switch z.data[i] {
	case '{':
		return z.skipNested(i, '}')
	case '[':
		return z.skipNested(i, ']')
	case '"':
		return z.textEnd(i + 1)
	case 't':
		return z.wordEnd(i, "true")
	case 'f':
		return z.wordEnd(i, "false")
	case 'n':
		return z.wordEnd(i, "null")
	}
	end, _ := z.numberEnd(i)
	return end
}

// skipNested passes over an array or object, which ends with the given bracket.
func (z *Tokens) skipNested(i int, bracket byte) int {
	if z.depth == MaxDepth {
		return -1
	}
	z.depth++
	defer func() { z.depth-- }()
	for first := true; ; first = false {
		if i = Space(z.data, i+1); i >= len(z.data) {
			return -1
		}
		if first && z.data[i] == bracket {
			return i + 1
		}
		if bracket == '}' {
			if z.data[i] != '"' {
				return -1
			}
			if i = z.textEnd(i + 1); i < 0 {
				return -1
			}
			if i = Space(z.data, i); i == len(z.data) || z.data[i] != ':' {
				return -1
			}
			i = Space(z.data, i+1)
		}
		if i = z.skip(i); i < 0 {
			return -1
		}
		if i = Space(z.data, i); i == len(z.data) || z.data[i] != ',' {
			break
		}
	}
	if i == len(z.data) || z.data[i] != bracket {
		return -1
	}
	return i + 1
}

// textEnd returns the index after the string whose content is at i, or -1.
func (z *Tokens) textEnd(i int) int {
	for {
		if i = plain(z.data, i); i >= len(z.data) {
			return -1
		}
		switch c := z.data[i]; {
		case c == '"':
			return i + 1
		case c == '\\':
			if i = escape(z.data, i+1); i < 0 {
				return -1
			}
		case c < ' ':
			return -1
		default:
			i++
		}
	}
}
