package fieldpath

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

// node is an API type that contains itself.
type node struct {
	Metadata struct {
		Name string `json:"name"`
	} `json:"metadata"`
	At       time.Time         `json:"at"`
	Left     *node             `json:"left"`
	Children []node            `json:"children"`
	Named    map[string]node   `json:"named"`
	Words    map[string]string `json:"words"`
}

// nodeView is a view of it that contains itself, too.
type nodeView struct {
	Metadata struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Left     *nodeView           `json:"left"`
	Children []nodeView          `json:"children"`
	Named    map[string]nodeView `json:"named"`
}

// TestViewOfATypeInItself checks such a view, and projects a node on it.
func TestViewOfATypeInItself(t *testing.T) {
	view, api := reflect.TypeFor[*nodeView](), reflect.TypeFor[*node]()
	if err := CheckView(view, api); err != nil {
		t.Fatal(err)
	}
	var whole node
	whole.Metadata.Name, whole.At, whole.Children = "a", time.Now(), []node{}
	whole.Left = &node{Children: []node{{}}, Named: map[string]node{"b": {Words: map[string]string{}}}}
	var got, want nodeView
	want.Metadata.Name, want.Children = "a", []nodeView{}
	want.Left = &nodeView{Children: []nodeView{{}}, Named: map[string]nodeView{"b": {}}}
	NewProjection(view.Elem(), api.Elem()).Project(&got, &whole)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// TestMistakesOfViews are those that Go's vet does not let pass in source.
func TestMistakesOfViews(t *testing.T) {
	metadata := reflect.StructField{
		Name: "Metadata", Type: reflect.TypeFor[struct{}](), Tag: `json:"metadata"`,
	}
	text := func(name, tag string) reflect.StructField {
		return reflect.StructField{Name: name, Type: reflect.TypeFor[string](), Tag: reflect.StructTag(tag)}
	}
	inlined := func(name string) reflect.StructField {
		t := reflect.TypeFor[base]()
		return reflect.StructField{Name: name, Type: t, Tag: `json:",inline"`, Anonymous: true}
	}
	hidden := text("words", `json:"words"`)
	hidden.PkgPath = "example.com/views"
	for says, fields := range map[string][]reflect.StructField{
		"is not exported": {metadata, hidden},
		"Name of fieldpath.base and Name of the view are both": {
			metadata, inlined("Base"), text("Name", `json:"name"`),
		},
		"Name of fieldpath.base and Name of fieldpath.base are both": {
			metadata, inlined("Base"), inlined("Other"),
		},
		"2 fields that are tagged":                 {metadata, text("More", `json:"metadata"`)},
		"A of the view and B of the view are both": {metadata, text("A", `json:"at"`), text("B", `json:"at"`)},
		"has no tag":       {metadata, text("Words", "")},
		"which no API has": {metadata, text("Words", `json:"words,string"`)},
		"the keys of map[int]string are no strings": {metadata, {
			Name: "Words", Type: reflect.TypeFor[map[int]string](), Tag: `json:"words"`,
		}},
	} {
		view := reflect.PointerTo(reflect.StructOf(fields))
		if err := CheckView(view, nil); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
	}
	for _, view := range []reflect.Type{reflect.TypeFor[nodeView](), reflect.TypeFor[*string]()} {
		if err := CheckView(view, nil); err == nil {
			t.Errorf("%v is taken for a view", view)
		}
	}
}

// base is embedded by views.
type base struct {
	Name string `json:"name"`
}

// changed is a key that is not what JSON has.
type changed string

func (c *changed) UnmarshalText(text []byte) error {
	*c = "not " + changed(text)
	return nil
}

// TestOwnTypes are views of types that no API of Kubernetes has.
func TestOwnTypes(t *testing.T) {
	type own struct {
		Metadata struct{}          `json:"metadata"`
		Pair     [2]int            `json:"pair"`
		Keys     map[changed]int64 `json:"keys"`
	}
	type pair struct {
		Metadata struct{}  `json:"metadata"`
		Pair     [3]string `json:"pair"`
	}
	type keys struct {
		Metadata struct{}         `json:"metadata"`
		Keys     map[string]int64 `json:"keys"`
	}
	for path, view := range map[string]reflect.Type{
		`"pair"`: reflect.TypeFor[*pair](), `"keys"`: reflect.TypeFor[*keys](),
	} {
		if err := CheckView(view, reflect.TypeFor[*own]()); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%v: %v", view, err)
		}
	}
	if err := CheckView(reflect.TypeFor[*own](), reflect.TypeFor[*own]()); err != nil {
		t.Error(err)
	}
}

// TestDeclaredEnds lists the fields of a view that contains itself, and of one that asks whether
// something is there.
func TestDeclaredEnds(t *testing.T) {
	type asks struct {
		Left *struct{} `json:"left"`
	}
	for want, view := range map[string]reflect.Type{
		"metadata.name left children named": reflect.TypeFor[*nodeView](),
		"left":                              reflect.TypeFor[*asks](),
	} {
		if got := strings.Join(Declared(view), " "); got != want {
			t.Errorf("%v: %q, want %q", view, got, want)
		}
	}
}
