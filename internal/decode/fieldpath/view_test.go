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
	hidden := text("words", `json:"words"`)
	hidden.PkgPath = "example.com/views"
	for says, fields := range map[string][]reflect.StructField{
		"is not exported":              {metadata, hidden},
		"2 fields that are tagged":     {metadata, text("More", `json:"metadata"`)},
		"A and B of the view are both": {metadata, text("A", `json:"at"`), text("B", `json:"at"`)},
		"has no tag":                   {metadata, text("Words", "")},
		"which no API has":             {metadata, text("Words", `json:"words,string"`)},
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
