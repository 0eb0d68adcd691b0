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

// sharerOf returns what shares the objects of a source that no factory has, or nil for none:
// one that says what it decodes shares as it does that, as the package source does, so that
// only the results of a transform are left.
func sharerOf[T Object](src source.Source[T], o InformerOptions[T]) *dedup.Sharer {
	_, shares := src.(decodes)
	secrets := o.Resource.Group == "" && o.Resource.Resource == "secrets"
	if o.Sharing == ShareNothing || secrets || shares && o.Transform == nil {
		return nil
	}
	table := o.Among
	if table == nil {
		table = new(dedup.Table)
	}
	return dedup.NewSharer(table, dedup.SharerOptions{Sharing: o.Sharing, NoSecrets: o.Resource.Resource != ""})
}

// shareTransformed returns a transform whose results share what they have in common; a nil
// one returns what it gets. The results are replaced and not written to, as the transform, or
// the source, may have kept them.
func shareTransformed[T Object](transform func(T) (T, error), sharer *dedup.Sharer) func(T) (T, error) {
	switch {
	case sharer == nil:
		return transform
	case transform == nil:
		return func(obj T) (T, error) { return sharer.Share(obj).(T), nil }
	}
	return func(obj T) (T, error) {
		made, err := transform(obj)
		if err != nil {
			return made, err
		}
		return sharer.Share(made).(T), nil
	}
}
