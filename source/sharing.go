package source

import (
	"cmp"

	"github.com/tidings-go/tidings/internal/decode/dedup"
)

// Sharing selects the parts of decoded objects that are shared in memory. The values of objects
// do not depend on it.
type Sharing = dedup.Sharing

const (
	// ShareAll shares strings, messages, slices and maps. Objects must not be changed, as no
	// cached object may.
	ShareAll = dedup.ShareAll
	// ShareStrings shares strings alone: an object may be changed before it is cached, by a
	// transform for example.
	ShareStrings = dedup.ShareStrings
	// ShareNothing decodes every object for itself.
	ShareNothing = dedup.ShareNothing
)

// Table holds the parts that the objects of several sources and informers share: see
// RESTOptions.Table. The zero value is ready. Several goroutines may use it.
type Table = dedup.Table

// TableStats describe a [Table].
type TableStats = dedup.TableStats

// SharerStats count the objects that were searched for common parts after decoding.
type SharerStats = dedup.SharerStats

// DecodingStats count the objects that a [REST] source has decoded since it was made, without
// bookmarks.
type DecodingStats struct {
	// Shared objects were decoded with their parts shared, as Transport.Sharing says. Healthy
	// is all objects.
	Shared int64 `json:"shared,omitzero"`
	// Unshared objects were decoded each for itself: all of them if WhyUnshared is set, and
	// otherwise those that were not encoded as API servers encode objects. Healthy is 0 or
	// all.
	Unshared int64 `json:"unshared,omitzero"`
	// Rejected objects could not be decoded. Healthy is 0.
	Rejected int64 `json:"rejected,omitzero"`
	// JSON counts the objects that came in JSON as Go structs. Each is among those above, too.
	JSON int64 `json:"json,omitzero"`
	// WhyUnshared is the reason for which objects of the type are not shared, for example because
	// they are Secrets; nil where they are.
	WhyUnshared error `json:"-"`
	// After counts the objects that were shared after decoding: from a transform, from a
	// source that decodes by itself, or those in JSON that were decoded each for itself.
	After SharerStats `json:"-"`
}

// Add adds the counts of another source. The order of sources does not matter: of two reasons, the
// one whose text comes first stays.
func (s *DecodingStats) Add(other DecodingStats) {
	s.Shared += other.Shared
	s.Unshared += other.Unshared
	s.Rejected += other.Rejected
	s.JSON += other.JSON
	s.WhyUnshared = dedup.Reason(s.WhyUnshared, other.WhyUnshared)
	s.After.Add(other.After)
}

// DecodingStats returns the counts of the source. It may be called at any time.
func (s *REST[T]) DecodingStats() DecodingStats {
	return s.decoder.stats()
}

// NewSharer returns a sharer for objects of a resource that something has changed since the
// client decoded them. They share with the objects that sources with these options decode.
func (c *Client) NewSharer(resource Resource, o Transport) *dedup.Sharer {
	if resource.isSecrets() {
		o.Sharing = ShareNothing
	}
	options := dedup.SharerOptions{Sharing: o.Sharing, NoSecrets: resource.Name != ""}
	return dedup.NewSharer(cmp.Or(o.Table, &c.table), options)
}

// SharingStats describe the table of sources with these options.
func (c *Client) SharingStats(o Transport) TableStats { return cmp.Or(o.Table, &c.table).Stats() }
