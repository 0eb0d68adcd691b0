package flight

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/tidings-go/tidings/internal/engine/tape"
)

// The names of the parts of a file. FORMAT.md describes the format.
const (
	indexName = "index.json"

	baseName    = "base.jsonl.zst"
	recordsName = "records.jsonl.zst"
	dataName    = "data.zst"

	formatName    = "tidings flight recording"
	formatVersion = 1
)

func partName(track int, name string) string { return fmt.Sprintf("track-%d/%s", track, name) }

// index is the content of the part index.json.
type index struct {
	Format  string       `json:"format"`
	Version int          `json:"version"`
	Reason  string       `json:"reason,omitempty"`
	Began   time.Time    `json:"began"`
	Made    time.Time    `json:"made"`
	Cut     []string     `json:"cut,omitempty"`
	Tracks  []indexTrack `json:"tracks"`
}

// indexTrack describes a track in the index.
type indexTrack struct {
	Name        string          `json:"name"`
	Collection  tape.Collection `json:"collection"`
	BaseVersion string          `json:"baseVersion,omitempty"`
	// Base and Records count the lines of these parts, and Bytes those of the data.
	Base    int   `json:"base"`
	Records int   `json:"records"`
	Bytes   int64 `json:"bytes"`
}

// baseLine is a line of the part base.jsonl: an object that was cached.
type baseLine struct {
	Key     string          `json:"key"`
	Version string          `json:"version,omitempty"`
	UID     string          `json:"uid,omitempty"`
	Object  json.RawMessage `json:"object,omitempty"`
}

// recordLine is a line of the part records.jsonl.
type recordLine struct {
	At      time.Duration `json:"at"` // nanoseconds
	Kind    tape.Kind     `json:"kind"`
	Type    string        `json:"type,omitempty"`
	Form    tape.Form     `json:"form,omitzero"`
	Key     string        `json:"key,omitempty"`
	Version string        `json:"version,omitempty"`
	// Bytes is the number of bytes of the data that belong to the record.
	Bytes   int  `json:"bytes,omitempty"`
	LeftOut bool `json:"leftOut,omitempty"`
	// Items are identities: key, version, UID, and the error of an item that is no object.
	Items [][4]string `json:"items,omitempty"`
	*tape.More
}
