package tidings

import (
	"github.com/tidings-go/tidings/source"
	"github.com/tidings-go/tidings/source/dedup"
)

// sharingFor returns what the objects of an informer share: a transform may change
// the one it is given, so that this has to be its own but for the strings.
func sharingFor(sharing Sharing, transform *Transform) Sharing {
	if sharing == ShareAll && transform != nil {
		return ShareStrings
	}
	return sharing
}

// sharerFor returns what shares the results of a transform, or nil for none.
func sharerFor(f *Factory, resource source.Resource, transformed bool) *dedup.Sharer {
	if !transformed || f.o.Sharing == ShareNothing {
		return nil
	}
	return f.client.NewSharer(resource, f.o.Sharing)
}

// shareTransformed returns a transform whose results share what they have in common. Those
// are replaced and not written to, as the transform may have kept them.
func shareTransformed[T Object](transform func(T) (T, error), sharer *dedup.Sharer) func(T) (T, error) {
	if transform == nil || sharer == nil {
		return transform
	}
	return func(obj T) (T, error) {
		made, err := transform(obj)
		if err != nil {
			return made, err
		}
		return sharer.Share(made).(T), nil
	}
}
