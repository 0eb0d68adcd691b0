package slot

import "strings"

const (
	// Count is the number of slots.
	Count = 256
	// MaxControllers is the largest number of controllers that a group leads singly. In sets, their
	// numbers follow those of the slots.
	MaxControllers = 64
	// Entries is the number of both.
	Entries = Count + MaxControllers
)

// Key is the field by which objects are divided.
type Key string

// The keys.
const (
	// UID divides by metadata.uid: evenly, and without regard to owners.
	UID Key = "uid"
	// Namespace divides by metadata.namespace, so that all objects of a namespace are in one slot.
	Namespace Key = "namespace"
)

// Of returns the slot of an object with a UID and a namespace.
func (k Key) Of(uid, namespace string) int {
	if k == Namespace {
		return int(mix(hash(namespace)) >> 56)
	}
	return int(hash(uid) >> 56)
}

// In reports whether the slot of an object with a UID and a namespace is in a set. An object without
// a namespace, divided by it, has no slot; In reports true, so that the reader of the object can
// report it.
func (k Key) In(s Set, uid, namespace string) bool {
	return k == Namespace && namespace == "" || s.Has(k.Of(uid, namespace))
}

// NamespaceOf returns the namespace in a key, which is namespace/name or a name alone.
func NamespaceOf(key string) string {
	namespace, _, found := strings.Cut(key, "/")
	if !found {
		return ""
	}
	return namespace
}

// hash is FNV-1a of 64 bits.
func hash(value string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(value) {
		h = (h ^ uint64(value[i])) * 1099511628211
	}
	return h
}

// mix is the finaliser of SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number
// Generators, 2014).
func mix(h uint64) uint64 {
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}
