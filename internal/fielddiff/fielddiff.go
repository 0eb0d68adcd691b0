// Package fielddiff says in which fields two Kubernetes objects differ: [Diff]
// returns a [Change] for each, with a path as a user would write it.
//
// Objects are compared as JSON would show them. Two lists whose elements are all
// objects with the same identifying field (name, type, key, …), unique on both
// sides, are matched by it, as kubectl does; other lists are matched by position.
//
// The functions keep no state and may be called from any goroutine. They read the
// objects and change nothing.
package fielddiff

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// Kind says how a field differs.
type Kind uint8

const (
	// Added is a field that only the new object has.
	Added Kind = iota + 1
	// Removed is a field that only the old object has.
	Removed
	// Changed is a field with another value.
	Changed
)

// Change is one field in which two objects differ.
type Change struct {
	Kind Kind
	// Path is the field, as in spec.containers[name=app].image.
	Path string
	// Old and New are the values on both sides, as JSON has them: nil, string,
	// bool, int64, float64, []any or map[string]any.
	Old, New any
}

// Diff returns the fields in which two objects differ, sorted by path. Either may be
// nil, which has no fields. Something that cannot be shown as JSON is compared and
// shown as a whole, under the empty path.
func Diff(old, new any) []Change {
	before, errBefore := tree(old)
	after, errAfter := tree(new)
	if errBefore != nil || errAfter != nil {
		if reflect.DeepEqual(old, new) {
			return nil
		}
		return []Change{{Kind: Changed, Old: fmt.Sprint(old), New: fmt.Sprint(new)}}
	}
	d := &differ{}
	d.maps("", before, after)
	return d.changes
}

// tree turns an object into maps.
func tree(obj any) (map[string]any, error) {
	if obj == nil {
		return nil, nil
	}
	if v := reflect.ValueOf(obj); v.Kind() == reflect.Pointer && v.IsNil() {
		return nil, nil
	}
	if u, ok := obj.(*unstructured.Unstructured); ok {
		return u.Object, nil
	}
	if m, ok := obj.(map[string]any); ok {
		return m, nil
	}
	if v := reflect.ValueOf(obj); v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
		return nil, fmt.Errorf("a %T has no fields", obj)
	}
	return runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
}

type differ struct{ changes []Change }

// values compares two values that stand under one path.
func (d *differ) values(path string, old, new any) {
	switch before := old.(type) {
	case map[string]any:
		if after, ok := new.(map[string]any); ok {
			d.maps(path, before, after)
			return
		}
	case []any:
		if after, ok := new.([]any); ok {
			d.lists(path, before, after)
			return
		}
	}
	if !reflect.DeepEqual(old, new) {
		d.changes = append(d.changes, Change{Kind: Changed, Path: path, Old: old, New: new})
	}
}

func (d *differ) added(path string, value any) {
	d.changes = append(d.changes, Change{Kind: Added, Path: path, New: value})
}

func (d *differ) removed(path string, value any) {
	d.changes = append(d.changes, Change{Kind: Removed, Path: path, Old: value})
}

func (d *differ) maps(path string, old, new map[string]any) {
	keys := make(map[string]struct{}, len(old)+len(new))
	for key := range old {
		keys[key] = struct{}{}
	}
	for key := range new {
		keys[key] = struct{}{}
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		before, had := old[key]
		after, has := new[key]
		switch field := join(path, key); {
		case !had:
			d.added(field, after)
		case !has:
			d.removed(field, before)
		default:
			d.values(field, before, after)
		}
	}
}

func (d *differ) lists(path string, old, new []any) {
	for _, key := range identifiers {
		before, okBefore := byIdentifier(old, key)
		after, okAfter := byIdentifier(new, key)
		if okBefore && okAfter {
			d.matched(path, key, before, after)
			d.order(path, key, old, new)
			return
		}
	}
	for i := range max(len(old), len(new)) {
		element := fmt.Sprintf("%s[%d]", path, i)
		switch {
		case i >= len(old):
			d.added(element, new[i])
		case i >= len(new):
			d.removed(element, old[i])
		default:
			d.values(element, old[i], new[i])
		}
	}
}

func (d *differ) matched(path, key string, old, new map[string]any) {
	names := maps.Clone(old)
	maps.Copy(names, new)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		before, had := old[name]
		after, has := new[name]
		switch element := fmt.Sprintf("%s[%s=%s]", path, key, name); {
		case !had:
			d.added(element, after)
		case !has:
			d.removed(element, before)
		default:
			d.values(element, before, after)
		}
	}
}

// order tells of two lists with the same elements in another order.
func (d *differ) order(path, key string, old, new []any) {
	before, after := namesOf(old, key), namesOf(new, key)
	if len(before) == len(after) && !slices.Equal(before, after) && sameElements(before, after) {
		d.changes = append(d.changes, Change{Kind: Changed, Path: path, Old: toAny(before), New: toAny(after)})
	}
}

func namesOf(list []any, key string) []string {
	names := make([]string, len(list))
	for i, element := range list {
		names[i] = fmt.Sprint(element.(map[string]any)[key])
	}
	return names
}

func sameElements(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

func toAny(names []string) []any {
	list := make([]any, len(names))
	for i, name := range names {
		list[i] = name
	}
	return list
}

// identifiers are the fields by which the API tells elements of a list apart, the
// most telling first.
var identifiers = []string{"uid", "name", "type", "key", "ip", "containerPort", "port", "mountPath", "topologyKey", "manager"}

// byIdentifier returns the elements of a list by a field, if all have it and no two
// have the same.
func byIdentifier(list []any, key string) (map[string]any, bool) {
	elements := make(map[string]any, len(list))
	for _, element := range list {
		object, ok := element.(map[string]any)
		if !ok {
			return nil, false
		}
		var name string
		switch value := object[key].(type) {
		case string:
			name = value
		case int64:
			name = strconv.FormatInt(value, 10)
		default:
			return nil, false
		}
		if _, twice := elements[name]; twice {
			return nil, false
		}
		elements[name] = element
	}
	return elements, true
}

var plainKey = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// join appends a key to a path, quoted where a dot would be misread.
func join(path, key string) string {
	switch {
	case !plainKey.MatchString(key):
		return path + "[" + strconv.Quote(key) + "]"
	case path == "":
		return key
	default:
		return path + "." + key
	}
}

// Format shows a value on one line of at most limit characters.
func Format(value any, limit int) string {
	var text string
	switch v := value.(type) {
	case nil:
		text = "null"
	case string:
		text = strconv.Quote(v)
	default:
		encoded, err := json.Marshal(v)
		if err != nil {
			encoded = fmt.Append(nil, v)
		}
		text = string(encoded)
	}
	runes := []rune(text)
	switch {
	case len(runes) <= limit:
		return text
	case limit <= 0:
		return ""
	default:
		return string(runes[:limit-1]) + "…"
	}
}
