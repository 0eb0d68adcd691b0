package tidings

import (
	"github.com/tidings-go/tidings/internal/dedup"
	"github.com/tidings-go/tidings/source"
)

// sharingFor returns the sharing of the objects of a source: a transform may change the object
// that it receives, so that this object may share strings alone.
func sharingFor(sharing Sharing, transform *Transform) Sharing {
	if sharing == ShareAll && transform != nil {
		return ShareStrings
	}
	return sharing
}

// sharerFor returns the sharer of the results of a transform, or nil for none.
func sharerFor(f *Factory, resource source.Resource, transformed bool) *dedup.Sharer {
	if !transformed || f.o.Transport.Sharing == ShareNothing {
		return nil
	}
	return f.client.NewSharer(resource, f.o.Transport)
}

// sharerOf returns the sharer for an informer without a factory, or nil for none. A source that
// has the method DecodingStats shares as it decodes: then only the results of a transform are
// left.
func sharerOf[T Object](src source.Source[T], o InformerOptions[T]) *dedup.Sharer {
	_, shares := src.(interface{ DecodingStats() source.DecodingStats })
	secrets := dedup.IsSecret(o.Resource.Group, o.Resource.Resource, "")
	if o.Transport.Sharing == ShareNothing || secrets || shares && o.Transform == nil {
		return nil
	}
	table := o.Transport.Table
	if table == nil {
		table = new(source.Table)
	}
	return dedup.NewSharer(table, dedup.SharerOptions{
		Sharing: o.Transport.Sharing, NoSecrets: o.Resource.Resource != "",
	})
}

// sharingBy returns a function for engine.Options.Share, or nil.
func sharingBy[T Object](sharer *dedup.Sharer) func() func(T) T {
	if sharer == nil {
		return nil
	}
	return func() func(T) T {
		return func(obj T) T { return sharer.Share(obj).(T) }
	}
}
