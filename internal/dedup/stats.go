package dedup

// DecoderStats count the objects of a decoder.
type DecoderStats struct {
	// Shared objects were decoded here.
	Shared int64
	// Generated objects were left to the generated code, or to the API machinery if
	// they are maps: all of them if Shares says so, and otherwise those that were
	// encoded as Go does not encode objects. Healthy is 0 or all.
	Generated int64
	// Rejected objects could not be decoded. Healthy is 0.
	Rejected int64
}

// Stats returns the decoder's counts.
func (d *Decoder) Stats() DecoderStats {
	return DecoderStats{Shared: d.decoded.Load(), Generated: d.generated.Load(), Rejected: d.rejected.Load()}
}

// TableStats describe a table. The counts are since it was made; those of objects
// that were decoded last may be missing.
type TableStats struct {
	// Values are the messages, slices and maps that the table knows, and Strings
	// the strings that it holds.
	Values, Strings int
	// Bytes is about what they take: keys and records of values, strings. Budget
	// is what they may take.
	Bytes, Budget int64
	// Hits and Misses count attempts to share.
	Hits, Misses int64
	// Kept counts what was put into the table, Refused what was not because the
	// budget was used up, and Forgotten what was dropped again.
	Kept, Refused, Forgotten int64
}

// Stats returns what the table holds and what it has done.
func (t *Table) Stats() TableStats {
	t.start()
	t.mu.Lock()
	defer t.mu.Unlock()
	return TableStats{
		Values: t.pieces.used, Strings: t.texts.used, Bytes: t.bytes, Budget: t.budget,
		Hits: t.counts.hits.Load(), Misses: t.counts.misses.Load(),
		Kept: t.counts.kept.Load(), Refused: t.counts.refused.Load(), Forgotten: t.counts.forgotten.Load(),
	}
}
