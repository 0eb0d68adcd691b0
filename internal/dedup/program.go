package dedup

import (
	"reflect"
	"unsafe"
)

// A plan is a program with what it takes to run it. All decoders of a table for
// one Go type that leave out the same fields have the same. It does not change, but for its idle runs.
type plan struct {
	program *program
	sites   int            // number of sites
	makers  []reflect.Type // types of the values behind pointers and in slices
	maps    []reflect.Type
	meta    bool // objects begin with their metadata

	idle pool[*run]
}

// take returns a run that nobody else uses.
func (p *plan) take(t *Table, sharing Sharing) *run {
	if r, ok := p.idle.take(sharing); ok {
		return r
	}
	return newRun(t, p, sharing)
}

// give takes a run back.
func (p *plan) give(r *run) { p.idle.give(r, r.sharing) }

// A program says how the messages of one Go type are decoded, or of one form of it. It is compiled
// once from the type's struct tags; running it needs no reflection.
type program struct {
	typ    reflect.Type
	fields []field
	// byNumber has the index of a field plus one, by the number of the field.
	byNumber []uint8
	// hand decodes the types that have an Unmarshal written by hand.
	hand func(r *run, data []byte, to unsafe.Pointer) bool
	// quantities says that a value of the type holds a Quantity in itself, not
	// behind a pointer: a value with an address then has one that its readers
	// may write to.
	quantities bool
}

// operation says what a field holds.
type operation uint8

const (
	opBool operation = iota
	opInt32
	opInt64
	opString
	opBytes
	opMessage // in the struct itself
	opBoolPointer
	opInt32Pointer
	opInt64Pointer
	opStringPointer
	opMessagePointer
	// From here on, what there is one or more of.
	opStrings
	opBools
	opInt32s
	opInt64s
	opMessages
	opMap
	opSkip // of any type, left out
)

// A field is a step of a program. It fits into a cache line.
type field struct {
	tag     uint32
	site    int32 // index of the site of the field
	inner   int32 // index of the site of the strings in its value
	maker   int32 // index of the maker of its value
	op      operation
	offset  uintptr
	element uintptr  // size of what the value is one or more of
	program *program // of messages
	mapping *mapping // of maps
	shape   *shape   // identity of the form of the field's Go type in the tables
}

// A shape is the identity of a form of a Go type in the tables: bytes mean the same value
// only where they are read as the same type, and without the same fields.
type shape struct {
	salt uint64 // makes the hashes of the same bytes differ
}
