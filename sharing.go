package tidings

import (
	"fmt"

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

// checkIdentity returns an error if the result of a transform is not a state of the object that
// was received.
// Another name would be found under the key of the one received, and another version would
// make later states look older.
func checkIdentity[T Object](received source.Item[T], made T) (T, error) {
	if source.Key(made.GetNamespace(), made.GetName()) != received.Key {
		return made, fmt.Errorf("it made another object of it, %q in namespace %q: "+
			"keep the name and the namespace", made.GetName(), made.GetNamespace())
	}
	if version := made.GetResourceVersion(); version != "" && version != received.Version {
		return made, fmt.Errorf("it changed the resourceVersion from %q to %q: keep it or remove it",
			received.Version, version)
	}
	if uid := string(made.GetUID()); uid != "" && uid != received.UID {
		return made, fmt.Errorf("it changed the uid from %q to %q: keep it or remove it",
			received.UID, uid)
	}
	return made, nil
}
