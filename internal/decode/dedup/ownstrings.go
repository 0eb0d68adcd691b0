package dedup

// ownStrings gathers the strings of an object that no other object has. They are copied out
// of the frame together, into one allocation.
type ownStrings struct {
	bytes   []byte
	pending []pendingString
	// index finds strings in pending by their mix; the bytes decide.
	index [64]uint16
}

// A pendingString is a string that is still to be set.
type pendingString struct {
	to       *string
	begin, n int
}

const (
	// maxOwn bounds the strings that are gathered: to keep one of them is to keep all that
	// the object has gathered.
	maxOwn = 256
	// retainedPending and retainedBytes bound the memory that is kept between objects.
	retainedPending = 1 << 12
	retainedBytes   = 1 << 16
)

// find returns where the string with this content begins, if it was the last one gathered
// with a mix like m.
func (o *ownStrings) find(m uint64, content []byte) (begin int, ok bool) {
	k := int(o.index[m>>58])
	if k >= len(o.pending) {
		return 0, false
	}
	p := &o.pending[k]
	return p.begin, string(o.bytes[p.begin:p.begin+p.n]) == string(content)
}

// add sets *to to the string content, now or when the object is complete.
func (o *ownStrings) add(m uint64, content []byte, to *string) {
	if len(content) > maxOwn {
		*to = string(content)
		return
	}
	begin, ok := o.find(m, content)
	if !ok {
		begin = len(o.bytes)
		o.index[m>>58] = uint16(len(o.pending))
		o.bytes = append(o.bytes, content...)
	}
	o.pending = append(o.pending, pendingString{to, begin, len(content)})
}

func (o *ownStrings) assign() {
	if len(o.pending) == 0 {
		return
	}
	all := string(o.bytes)
	for i := range o.pending {
		p := &o.pending[i]
		*p.to = all[p.begin : p.begin+p.n]
	}
	o.forget()
}

// forget drops the strings, so that nothing here keeps their objects.
func (o *ownStrings) forget() {
	clear(o.pending)
	o.pending, o.bytes = o.pending[:0], o.bytes[:0]
	if cap(o.pending) > retainedPending {
		o.pending = nil
	}
	if cap(o.bytes) > retainedBytes {
		o.bytes = nil
	}
}
