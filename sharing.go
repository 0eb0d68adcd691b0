package tidings

import (
	"cmp"

	"github.com/tidings-go/tidings/internal/decode/dedup"
	"github.com/tidings-go/tidings/source"
)

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
	table = cmp.Or(table, new(source.Table))
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
