package dedup

import (
	"encoding/binary"
	"math/bits"
)

// recentOf has what a run shared lately, by a cheap hash: a way past the table for
// the strings that are everywhere and for objects that come after their like.
type recentOf[T any] struct {
	texts []T
	items []*item
	shift uint // of a hash of 64 bits, for an index
	round uint32
}

type (
	recent      = recentOf[string]
	recentBoxes = recentOf[*string] // of strings in interfaces
)

const (
	leastRecent = 6  // bits of an index at first
	mostRecent  = 10 // and when the run has decoded manyObjects
	manyObjects = 256

	// mostRecentText and mostRecentKey bound what is remembered, and with it the
	// memory: to 256 KiB of strings and 1 MiB of keys, in the worst case.
	mostRecentText = 256
	mostRecentKey  = 1 << 10
)

func (c *recentOf[T]) resize(bits uint) {
	c.texts, c.items = make([]T, 1<<bits), make([]*item, 1<<bits)
	c.shift = 64 - bits
}

// enter prepares for the decoded-th object. What was remembered before the
// table's sweep went round is dropped, so that the table sees what is in use.
func (c *recentOf[T]) enter(decoded int, round uint32) {
	switch {
	case c.texts == nil:
		c.resize(leastRecent)
	case decoded == manyObjects:
		c.resize(mostRecent)
	case c.round != round:
		clear(c.texts)
		clear(c.items)
	}
	c.round = round
}

// mix is a cheap hash of the length and the ends of b. It decides only where to
// look.
func mix(b []byte) uint64 {
	var x uint64
	n := len(b)
	switch {
	case n >= 8:
		x = binary.LittleEndian.Uint64(b) ^ bits.RotateLeft64(binary.LittleEndian.Uint64(b[n-8:]), 29)
	case n >= 4:
		x = uint64(binary.LittleEndian.Uint32(b)) | uint64(binary.LittleEndian.Uint32(b[n-4:]))<<32
	case n > 0:
		x = uint64(b[0]) | uint64(b[n/2])<<8 | uint64(b[n-1])<<16
	}
	return (x ^ uint64(n)<<7) * 0x9e3779b97f4a7c15
}
