package fieldpath

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// The types below have the kinds of fields of API types: an embedded struct whose fields stand
// beside the others', one with a name, lists, pointers, maps, and values that read themselves.
type (
	thing struct {
		Kind  `json:",inline"`
		Meta  `json:"metadata"`
		Spec  spec    `json:"spec"`
		Parts []*part `json:"parts,omitempty"`
		local int
	}
	Kind struct {
		Kind string `json:"kind"`
	}
	Meta struct {
		Name    string            `json:"name"`
		Labels  map[string]string `json:"labels"`
		Time    stamp             `json:"time"`
		Managed []string          `json:"managed"`
	}
	spec struct {
		*Choice `json:",inline"`
		Name    string `json:"name"`
		Secret  string `json:"-"`
		Size    int
	}
	Choice struct {
		Name  string `json:"name"` // hidden by spec's own
		File  *file  `json:"file"`
		Other *thing `json:"other"`
	}
	file struct {
		Path string `json:"path"`
		Mode int    `json:"mode"`
	}
	part struct {
		Name string `json:"name"`
		File file   `json:"file"`
	}
	stamp struct{ Seconds int }
)

func (*stamp) UnmarshalJSON([]byte) error { return nil }

const thingJSON = `{"kind": "Thing", "metadata": {"name": "a", "labels": {"b": "c"}, "managed": ["m"]},
	"spec": {"name": "n", "Size": 3, "file": {"path": "p", "mode": 7}, "other": {"kind": "Other", "spec": {"name": "inner"}}},
	"parts": [{"name": "p1", "file": {"path": "x", "mode": 1}}, null, {"name": "p2", "file": {"path": "y", "mode": 2}}]}`

func newThing(t *testing.T) *thing {
	t.Helper()
	of := &thing{local: 5}
	if err := json.Unmarshal([]byte(thingJSON), of); err != nil {
		t.Fatal(err)
	}
	return of
}

// TestClear clears fields in two ways, in a struct and in a map.
func TestClear(t *testing.T) {
	for _, paths := range [][]string{
		nil, {"spec"}, {"parts"}, {"parts.file.mode"}, {"parts.name", "parts.file"}, {"metadata.labels", "metadata.time"},
		{"spec.name", "spec.file.path"}, {"spec.file"}, {"spec.other.spec.name", "spec.other.parts.name"}, {"spec.Size"},
	} {
		tree, err := Parse(paths)
		if err != nil {
			t.Fatal(err)
		}
		of := reflect.TypeFor[*thing]()
		if err := tree.Check(of); err != nil {
			t.Fatal(err)
		}
		got, want := newThing(t), &thing{local: 5}
		NewClearer(tree, of).Clear(got)

		var object map[string]any
		if err := json.Unmarshal([]byte(thingJSON), &object); err != nil {
			t.Fatal(err)
		}
		tree.Remove(object)
		data, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(data, want); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %+v, want %+v", paths, got, want)
		}
		if changed := !reflect.DeepEqual(got, newThing(t)); changed != (paths != nil) {
			t.Errorf("%q: changed %v", paths, changed)
		}
	}
}

// TestClearWhereThereIsNothing goes along paths on which pointers are nil, embedded ones too.
func TestClearWhereThereIsNothing(t *testing.T) {
	tree, err := Parse([]string{"spec.file.path", "parts.file.mode", "spec.other"})
	if err != nil {
		t.Fatal(err)
	}
	c, got := NewClearer(tree, reflect.TypeFor[thing]()), &thing{Parts: []*part{nil}}
	c.Clear(got)
	if !reflect.DeepEqual(got, &thing{Parts: []*part{nil}}) {
		t.Errorf("%+v", got)
	}
}

func TestCheckRefuses(t *testing.T) {
	for path, says := range map[string][]string{
		"status":               {"fieldpath.thing", `no field "status"`, "it has kind, metadata, parts, spec"},
		"Spec":                 {`no field "Spec"`, "spec"},
		"spec.Name":            {"fieldpath.spec", "Size, file, name, other"},
		"spec.Secret":          {`no field "Secret"`},
		"local":                {`no field "local"`},
		"parts.file.modes":     {"fieldpath.file", "it has mode, path"},
		"parts.name.x":         {`"parts.name"`, "one value (string)", "whole"},
		"metadata.labels.app":  {`"metadata.labels"`, "a map (map[string]string)", "whole or not at all"},
		"metadata.managed.x":   {"one value (string)"},
		"metadata.time.second": {`"metadata.time"`, "one value (fieldpath.stamp)"},
	} {
		tree, err := Parse([]string{"spec.Size", path})
		if err != nil {
			t.Fatal(err)
		}
		err = tree.Check(reflect.TypeFor[*thing]())
		for _, says := range append(says, `"`+path+`"`) {
			if err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("%q: %v, should say %q", path, err, says)
			}
		}
	}
}

func TestCheckField(t *testing.T) {
	tree, err := Parse([]string{"anything.at.all", "metadata.label"})
	if err != nil {
		t.Fatal(err)
	}
	err = tree.CheckField("metadata", reflect.TypeFor[Meta]())
	if err == nil || !strings.Contains(err.Error(), `"metadata.label"`) || !strings.Contains(err.Error(), "labels") {
		t.Errorf("got %v", err)
	}
	if err := tree.CheckField("spec", reflect.TypeFor[spec]()); err != nil {
		t.Errorf("got %v for a field that the tree does not have", err)
	}
}

// TestIn walks down field by field, as a decoder does: a field of an embedded struct is found
// there, unless it is hidden.
func TestIn(t *testing.T) {
	tree, err := Parse([]string{"name", "file.mode", "other"})
	if err != nil {
		t.Fatal(err)
	}
	of := reflect.TypeFor[spec]()
	for field, want := range map[string]struct {
		rest    []string
		dropped bool
	}{
		"Choice": {[]string{"file.mode", "other"}, false},
		"Name":   {nil, true},
		"Secret": {nil, false},
		"Size":   {nil, false},
	} {
		f, _ := of.FieldByName(field)
		rest, dropped := tree.In(of, f)
		if !slices.Equal(rest.Paths(), want.rest) || dropped != want.dropped || (rest == nil) != (want.rest == nil) {
			t.Errorf("%s: %v, %v; want %v", field, rest, dropped, want)
		}
	}
}

// TestEmbedsItself looks at a type that no one can decode, and returns.
func TestEmbedsItself(t *testing.T) {
	type Loop struct {
		*Loop `json:",inline"`
		Name  string `json:"name"`
	}
	if err := (Tree{"name": nil}).Check(reflect.TypeFor[Loop]()); err != nil {
		t.Error(err)
	}
}

func TestString(t *testing.T) {
	one, two := Tree{"a": {"c": nil, "b": nil}}, Tree{"a": {"b": nil, "c": nil}}
	if one.String() != two.String() || one.String() != "a.b,a.c" || Tree(nil).String() != "" {
		t.Errorf("%q and %q", one, two)
	}
}
