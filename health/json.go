package health

import (
	"encoding/json"
	"errors"

	"github.com/tidings-go/tidings/source"
)

// This file is the JSON form of health. The names of its fields are those of the Go structs in
// lowerCamelCase, errors are their texts, and zero values are left out. The JSON form of errors
// is up to their types, which have none. Errors that were read have the texts, and no types.

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

func (f watchForm) watch() Watch {
	w := Watch(f.plainWatch)
	w.LastError, w.LastDropped = errorOf(f.LastError), errorOf(f.LastDropped)
	w.LastTransformError = errorOf(f.LastTransformError)
	return w
}

// MarshalJSON returns the JSON form.
func (w Watch) MarshalJSON() ([]byte, error) { return json.Marshal(formOf(w)) }

// UnmarshalJSON reads the JSON form.
func (w *Watch) UnmarshalJSON(data []byte) error {
	var form watchForm
	if err := json.Unmarshal(data, &form); err != nil {
		return err
	}
	*w = form.watch()
	return nil
}

// informerForm is the JSON form of an Informer.
type informerForm struct {
	Name string `json:"name"`
	watchForm
	Synced         bool             `json:"synced,omitzero"`
	Version        string           `json:"version,omitzero"`
	Objects        int              `json:"objects,omitzero"`
	Queued         int              `json:"queued,omitzero"`
	Batches        Durations        `json:"batches,omitzero"`
	Stale          uint64           `json:"stale,omitzero"`
	IndexErrors    uint64           `json:"indexErrors,omitzero"`
	LastIndexError string           `json:"lastIndexError,omitzero"`
	Decoding       decodingForm     `json:"decoding,omitzero"`
	Published      Published        `json:"published,omitzero"`
	Declares       []string         `json:"declares,omitempty"`
	Fallback       string           `json:"fallback,omitzero"`
	Namespaces     map[string]Watch `json:"namespaces,omitempty"`
	Handlers       []Handler        `json:"handlers,omitempty"`
}

// MarshalJSON returns the JSON form. The fields of Watch stand among those of the informer.
func (i Informer) MarshalJSON() ([]byte, error) {
	return json.Marshal(informerForm{
		i.Name, formOf(i.Watch), i.Synced, i.Version, i.Objects, i.Queued, i.Batches, i.Stale,
		i.IndexErrors, text(i.LastIndexError), decodingFormOf(i.Decoding), i.Published,
		i.Declares, i.Fallback, i.Namespaces, i.Handlers,
	})
}

// UnmarshalJSON reads the JSON form. The version is that of the informer.
func (i *Informer) UnmarshalJSON(data []byte) error {
	var f informerForm
	if err := json.Unmarshal(data, &f); err != nil {
		return err
	}
	*i = Informer{
		f.Name, f.watch(), f.Synced, f.Version, f.Objects, f.Queued, f.Batches, f.Stale,
		f.IndexErrors, errorOf(f.LastIndexError), f.Decoding.stats(), f.Published, f.Declares,
		f.Fallback, f.Namespaces, f.Handlers,
	}
	return nil
}

// decodingForm is the JSON form of a source.DecodingStats.
type decodingForm struct {
	source.DecodingStats
	WhyUnshared string     `json:"whyUnshared,omitzero"`
	After       sharerForm `json:"after,omitzero"`
}

// sharerForm is the JSON form of a source.SharerStats.
type sharerForm struct {
	source.SharerStats
	WhyAlone string `json:"whyAlone,omitzero"`
}

func decodingFormOf(d source.DecodingStats) decodingForm {
	return decodingForm{d, text(d.WhyUnshared), sharerForm{d.After, text(d.After.WhyAlone)}}
}

func (f decodingForm) stats() source.DecodingStats {
	d := f.DecodingStats
	d.WhyUnshared, d.After = errorOf(f.WhyUnshared), f.After.SharerStats
	d.After.WhyAlone = errorOf(f.After.WhyAlone)
	return d
}

func errorOf(text string) error {
	if text == "" {
		return nil
	}
	return errors.New(text)
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
