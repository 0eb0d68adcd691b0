package dedup

// collected gathers the strings of an object that nothing else has. They are
// copied out of the frame together, into one allocation.
type collected struct {
	bytes []byte
	later []laterText
	// index finds strings in later by mix; what it says is checked.
	index [64]uint16
}

// A laterText is a string that is still to be set.
type laterText struct {
	at       *string
	begin, n int
}

// maxCollected bounds the strings that are collected: whoever keeps one string of
// an object keeps all that were collected with it.
const maxCollected = 256

// find returns the string with this content that was collected last with a mix
// like m.
func (c *collected) find(m uint64, content []byte) (begin int, ok bool) {
	k := int(c.index[m>>58])
	if k >= len(c.later) {
		return 0, false
	}
	t := &c.later[k]
	return t.begin, string(c.bytes[t.begin:t.begin+t.n]) == string(content)
}

func (c *collected) has(m uint64, content []byte) bool {
	_, ok := c.find(m, content)
	return ok
}

// add sees to it that *to becomes the string content.
func (c *collected) add(m uint64, content []byte, to *string) {
	if len(content) > maxCollected {
		*to = string(content)
		return
	}
	begin, ok := c.find(m, content)
	if !ok {
		begin = len(c.bytes)
		c.index[m>>58] = uint16(len(c.later))
		c.bytes = append(c.bytes, content...)
	}
	c.later = append(c.later, laterText{to, begin, len(content)})
}

// settle sets the strings.
func (c *collected) settle() {
	if len(c.later) == 0 {
		return
	}
	all := string(c.bytes)
	for i := range c.later {
		t := &c.later[i]
		*t.at = all[t.begin : t.begin+t.n]
	}
	c.forget()
}

// most* bound what is kept between objects.
const (
	mostLater = 1 << 12
	mostBytes = 1 << 16
)

// forget drops the strings, so that nothing here keeps their objects.
func (c *collected) forget() {
	clear(c.later)
	c.later, c.bytes = c.later[:0], c.bytes[:0]
	if cap(c.later) > mostLater {
		c.later = nil
	}
	if cap(c.bytes) > mostBytes {
		c.bytes = nil
	}
}
