package tape

import (
	"encoding/binary"
	"errors"
	"iter"
)

// Object is a state of an object.
type Object struct {
	// Key, Version and UID are its identity.
	Key, Version, UID string
	// Err is the reason for which it is no object of the collection, empty if it is one.
	Err string
	// Object is the object of a base; nil for its identity alone.
	Object any
	// Data is Object in JSON; nil for its identity alone.
	Data []byte
}

// AppendIdentity appends the identity of an object, and Err, to b.
func AppendIdentity(b []byte, key, version, uid, err string) []byte {
	for _, s := range [...]string{key, version, uid, err} {
		b = binary.AppendUvarint(b, uint64(len(s)))
		b = append(b, s...)
	}
	return b
}

// Identities yields the identities in b. It ends with an error at bytes that are not an identity.
func Identities(b []byte) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		for len(b) > 0 {
			var texts [4]string
			for i := range texts {
				size, n := binary.Uvarint(b)
				if n <= 0 || size > uint64(len(b)-n) {
					yield(Object{}, errors.New("an identity is cut off"))
					return
				}
				texts[i], b = string(b[n:n+int(size)]), b[n+int(size):]
			}
			o := Object{Key: texts[0], Version: texts[1], UID: texts[2], Err: texts[3]}
			if !yield(o, nil) {
				return
			}
		}
	}
}
