package health

import (
	"encoding/json"

	"github.com/tidings-go/tidings/source"
)

// This file is the JSON form of health. The names of its fields are those of the Go structs in
// lowerCamelCase, errors are their texts, and zero values are left out. The JSON form of errors
// is up to their types, which have none.

// plainWatch is a Watch without its method MarshalJSON.
type plainWatch Watch

// watchForm is the JSON form of a Watch.
type watchForm struct {
	plainWatch
	LastError          string `json:"lastError,omitzero"`
	LastDropped        string `json:"lastDropped,omitzero"`
	LastTransformError string `json:"lastTransformError,omitzero"`
}

func formOf(w Watch) watchForm {
	return watchForm{
		plainWatch(w), text(w.LastError), text(w.LastDropped), text(w.LastTransformError),
	}
}

// MarshalJSON returns the JSON form.
func (w Watch) MarshalJSON() ([]byte, error) { return json.Marshal(formOf(w)) }

// MarshalJSON returns the JSON form. The fields of Watch stand among those of the informer.
func (i Informer) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Name string `json:"name"`
		watchForm
		Synced         bool             `json:"synced,omitzero"`
		Version        string           `json:"version,omitzero"`
		Objects        int              `json:"objects,omitzero"`
		Queued         int              `json:"queued,omitzero"`
		Stale          uint64           `json:"stale,omitzero"`
		IndexErrors    uint64           `json:"indexErrors,omitzero"`
		LastIndexError string           `json:"lastIndexError,omitzero"`
		Decoding       decodingForm     `json:"decoding,omitzero"`
		Namespaces     map[string]Watch `json:"namespaces,omitempty"`
		Handlers       []Handler        `json:"handlers,omitempty"`
	}{
		i.Name, formOf(i.Watch), i.Synced, i.Version, i.Objects, i.Queued, i.Stale,
		i.IndexErrors, text(i.LastIndexError), decodingFormOf(i.Decoding), i.Namespaces, i.Handlers,
	})
}

// decodingForm is the JSON form of a source.DecodingStats.
type decodingForm struct {
	Shared      int64      `json:"shared,omitzero"`
	Unshared    int64      `json:"unshared,omitzero"`
	Rejected    int64      `json:"rejected,omitzero"`
	JSON        int64      `json:"json,omitzero"`
	WhyUnshared string     `json:"whyUnshared,omitzero"`
	After       sharerForm `json:"after,omitzero"`
}

// sharerForm is the JSON form of a source.SharerStats.
type sharerForm struct {
	Shared   int64  `json:"shared,omitzero"`
	Alone    int64  `json:"alone,omitzero"`
	WhyAlone string `json:"whyAlone,omitzero"`
}

func decodingFormOf(d source.DecodingStats) decodingForm {
	return decodingForm{
		d.Shared, d.Unshared, d.Rejected, d.JSON, text(d.WhyUnshared),
		sharerForm{d.After.Shared, d.After.Alone, text(d.After.WhyAlone)},
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
