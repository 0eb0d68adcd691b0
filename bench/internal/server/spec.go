package server

import "github.com/tidings-go/tidings/bench/internal/objects"

// Encoding is how objects are sent.
type Encoding string

// The encodings.
const (
	// Protobuf is what built-in resources are sent in to clients in Go.
	Protobuf Encoding = "protobuf"
	// JSON is what everything else is sent in.
	JSON Encoding = "JSON"
)

// Way is how an initial list is sent.
type Way string

// The ways.
const (
	// Streamed is a watch that begins with everything there is.
	Streamed Way = "streamed"
	// Paged is a list in pages.
	Paged Way = "paged"
)

// Spec says what a server has and how it sends it. All fields are required, but for
// Relist and Updates.
type Spec struct {
	// Kind is the kind of the objects, Objects their number, Seed what they are made
	// from.
	Kind    objects.Kind
	Objects int
	Seed    uint64
	// Encoding and Way are how they are sent. Anything else that is asked for is an
	// error.
	Encoding Encoding
	Way      Way
	// Relist prepares the list after a relist.
	Relist bool
	// Updates is how many new states of the objects, in turn, are prepared.
	Updates int
}

// Counts says how a relist changes a cache.
type Counts struct{ Deleted, Changed, Added int }

// After counts what a relist changes of n objects.
func After(n int) Counts {
	return Counts{Deleted: (n + 99) / 100, Changed: (n + 98) / 100, Added: (n + 99) / 100}
}

// made calls yield with every object of a list: of the first, or of that after a relist.
func (s Spec) made(relisted bool, yield func(objects.Object) error) error {
	for i := range s.Objects {
		object := s.Kind.New(s.Seed, i)
		if relisted && i%100 == 0 {
			continue
		}
		if relisted && i%100 == 1 {
			object.SetResourceVersion(objects.Version(10_000_000 + i))
		}
		if err := yield(object); err != nil {
			return err
		}
	}
	if !relisted {
		return nil
	}
	for i := range After(s.Objects).Added {
		object := s.Kind.New(s.Seed, s.Objects+i)
		object.SetResourceVersion(objects.Version(11_000_000 + i))
		if err := yield(object); err != nil {
			return err
		}
	}
	return nil
}

// FirstUpdate is the version of the first of the updates; the others follow one by one.
const FirstUpdate = 30_000_000

// updates calls yield with every update.
func (s Spec) updates(yield func(objects.Object) error) error {
	for i := range s.Updates {
		object := s.Kind.New(s.Seed, i%s.Objects)
		objects.Touch(object, i)
		object.SetResourceVersion(objects.Version(FirstUpdate - objects.FirstVersion + i))
		if err := yield(object); err != nil {
			return err
		}
	}
	return nil
}

// version returns the version of a list.
func version(relisted bool) string {
	if relisted {
		return objects.Version(20_000_000)
	}
	return objects.Version(9_000_000)
}
