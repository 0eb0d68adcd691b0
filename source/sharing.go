package source

import "github.com/tidings-go/tidings/internal/dedup"

// Sharing says what the decoded objects have in common in memory. Whatever it is,
// their values are the same.
type Sharing = dedup.Sharing

const (
	// ShareAll has objects share what they have in common: strings, messages,
	// slices and maps. They must not be changed, as no cached object may.
	ShareAll = dedup.ShareAll
	// ShareStrings has them share strings alone: an object may be changed before
	// it is cached, by a transform for example.
	ShareStrings = dedup.ShareStrings
	// ShareNothing has every object decoded for itself.
	ShareNothing = dedup.ShareNothing
)

// Table holds what the objects of several sources and informers have in common: see
// RESTOptions.Table. The zero value is ready. It may be used by several goroutines.
type Table = dedup.Table

// TableStats describe a [Table].
type TableStats = dedup.TableStats

// SharerStats count the objects that were searched for common parts after decoding.
type SharerStats = dedup.SharerStats

// DecodingStats count the objects that a [REST] source has decoded since it was made,
// bookmarks included.
type DecodingStats struct {
	// Shared objects share what they have in common as RESTOptions.Sharing says: they
	// came in protobuf, or in JSON as maps. Healthy is all objects of a built-in type
	// and of a dynamic source.
	Shared int64
	// Unshared objects came in the same forms and were decoded each for itself: all of
	// them where WhyUnshared is set, and otherwise those that were not encoded in
	// the way in which API servers encode objects. Healthy is 0 or all.
	Unshared int64
	// Rejected objects came in the same forms and could not be decoded. Healthy is 0.
	Rejected int64
	// JSON counts the objects that came in JSON as Go structs. These are decoded each
	// for itself; what After counts of them shares since then.
	JSON int64
	// WhyUnshared says why objects of the type are not shared, for example because
	// they are Secrets; nil where they are, and for Go structs in JSON.
	WhyUnshared error
	// After counts the objects that came decoded, out of a transform, or in JSON as Go
	// structs, and share what they have in common since then.
	After SharerStats
}

// Add adds what another source has counted.
func (s *DecodingStats) Add(other DecodingStats) {
	s.Shared += other.Shared
	s.Unshared += other.Unshared
	s.Rejected += other.Rejected
	s.JSON += other.JSON
	if s.WhyUnshared == nil {
		s.WhyUnshared = other.WhyUnshared
	}
	s.After.Add(other.After)
}

// DecodingStats returns what the source has decoded. It may be called at any time.
func (s *REST[T]) DecodingStats() DecodingStats {
	stats := s.decoder.stats()
	if s.bookmarks != nil {
		stats.Add(s.bookmarks.stats())
	}
	return stats
}

// NewSharer returns a sharer for objects of a resource that something has changed since
// the client decoded them. They share with what the client decodes.
func (c *Client) NewSharer(resource Resource, sharing Sharing) *dedup.Sharer {
	if resource.isSecrets() {
		sharing = ShareNothing
	}
	return dedup.NewSharer(&c.table, dedup.SharerOptions{Sharing: sharing, NoSecrets: resource.Name != ""})
}

// SharingStats describe what the objects of the client's sources have in common.
func (c *Client) SharingStats() TableStats { return c.table.Stats() }
