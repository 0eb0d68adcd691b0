package handover

// cell is an Entry in few bits, without epoch and weight: owner, next owner, ready, and the
// knowledge about versions. The versions of a slot are one number.
type cell uint16

func number(id ID) uint8 {
	if id == "" {
		return 0
	}
	return id[0] - 'a' + processes*(id[1]-'0') + 1
}

func identity(n uint8) ID {
	if n == 0 {
		return ""
	}
	return identities[n-1]
}

func cellOf(e Entry) cell {
	c := cell(number(e.Owner) | number(e.Next)<<3)
	if e.Ready {
		c |= 1 << 6
	}
	c |= cell(e.Left) << 7
	if e.Left == Known {
		c |= cell(versionOf(e.Versions)) << 9
	}
	return c
}

func (c cell) entry() Entry {
	e := Entry{Owner: identity(uint8(c & 7)), Next: identity(uint8(c >> 3 & 7)), Ready: c>>6&1 != 0, Left: Left(c >> 7 & 3)}
	if e.Left == Known {
		e.Versions = versionsAt[c>>9&3]
	}
	return e
}

// versionsAt are the versions of slots as an Entry has them.
var versionsAt = [4]map[string]string{{}, {"r": "1"}, {"r": "2"}, {"r": "3"}}

func versionOf(versions map[string]string) uint8 {
	if text := versions["r"]; text != "" {
		return text[0] - '0'
	}
	return 0
}

// table is the whole map.
type table [slots]cell

func (t table) entries() []Entry {
	entries := make([]Entry, slots)
	for i, c := range t {
		entries[i] = c.entry()
	}
	return entries
}
