package source

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tidings-go/tidings/internal/decode/dedup"
	"github.com/tidings-go/tidings/internal/decode/fieldpath"
)

// NewView returns a source of views of the objects of resource: of values of the Go type that make
// returns, which declares the fields that are read. whole is an object of the API type, for example
// new(corev1.Pod), or nil if there is no Go type; then the objects come in JSON, and what the view
// declares is not checked. [CheckView] says whether the type is a view; if it is not, every List and
// Watch fails with its error. RESTOptions.Drop is an error.
//
// A view with metadata alone asks the server for that alone, and one without managed fields as
// RESTOptions.DropManagedFields does.
func NewView[T Object](
	c *Client, resource Resource, make func() T, whole runtime.Object, o RESTOptions,
) *REST[T] {
	return newView(c, resource, make, whole, o, isOfMetadata(reflect.TypeOf(make())))
}

// newView returns a source of views. With metadata, the objects come with metadata alone.
func newView[T Object](
	c *Client, resource Resource, make func() T, whole runtime.Object, o RESTOptions, metadata bool,
) *REST[T] {
	t := reflect.TypeOf(make())
	err := CheckView(t, whole)
	if err == nil && len(o.Drop) > 0 {
		err = errors.New("RESTOptions.Drop is set: a view has what it declares, remove Drop")
	}
	gvk, as := resource.groupVersionKind(), ""
	if err == nil && metadata {
		whole, as, gvk = newMetadata(), metadataForm, metadataKind
	}
	o.DropManagedFields = err == nil && !slices.ContainsFunc(fieldpath.Declared(t), func(path string) bool {
		return strings.HasPrefix(path, "metadata.managedFields")
	})
	s := newREST(c, resource, o, func(o RESTOptions, table *Table) decoder[T] {
		d := &typedDecoder[T]{gvk: gvk, make: make, as: as}
		if err == nil {
			err = d.readViews(whole, table, o.Sharing)
		}
		return d
	})
	if err != nil {
		s.invalid = err
		return s
	}
	s.declares = DeclaredFields(t)
	s.identifiable, s.identifiableInJSON = s.decoder.(*typedDecoder[T]).isProtobuf, true
	s.objectSize += int64(t.Elem().Size())
	return s
}

// readViews makes a new decoder one of views.
func (d *typedDecoder[T]) readViews(whole runtime.Object, table *Table, sharing Sharing) error {
	view := d.make()
	if sharing == ShareAll {
		d.sharer = dedup.NewSharer(table, dedup.SharerOptions{NoSecrets: true})
	}
	var err error
	if whole == nil {
		d.structs, err = dedup.NewStructDecoder(table, d.gvk, view, sharing).Unchecked()
		return err
	}
	if d.structs, err = dedup.NewStructDecoder(table, d.gvk, whole, sharing).View(view); err != nil {
		return err
	}
	var message dedup.Message
	if message, d.isProtobuf = whole.(dedup.Message); d.isProtobuf && identifiable(reflect.TypeOf(whole)) {
		d.shared, err = dedup.NewDecoder(table, message, sharing).View(view)
	} else {
		d.isProtobuf = false
	}
	return err
}

// CheckView returns an error if a Go type is no view of the API type of whole; whole is nil if that has
// no Go type. The error names the path of the field, both types and the remedy.
//
// A view is a pointer to a struct. Each field is tagged with its name in the API, and has the type that
// the API has there. A struct may be another one with fewer fields, a named string may be a string.
// The metadata includes all fields of tidings.Meta.
func CheckView(view reflect.Type, whole runtime.Object) error {
	var api reflect.Type
	if whole != nil {
		api = reflect.TypeOf(whole)
	}
	if err := fieldpath.CheckView(view, api); err != nil {
		return err
	}
	for _, f := range fieldpath.Fields(view.Elem()) {
		if f.Name != "metadata" {
			continue
		}
		if missing := missingMetadata(f.Type); missing != "" {
			return fmt.Errorf("%q: %v has no field %q, which informers need: embed tidings.Meta, "+
				"or a struct that embeds it with the tag `json:\",inline\"`", f.Name, f.Type, missing)
		}
	}
	return nil
}

// DeclaredFields returns the paths of the fields that a view declares. "metadata" stands for those that
// each view has.
func DeclaredFields(view reflect.Type) []string {
	return append([]string{"metadata"}, slices.DeleteFunc(fieldpath.Declared(view), func(path string) bool {
		rest, ok := strings.CutPrefix(path, "metadata.")
		name, _, _ := strings.Cut(rest, ".")
		return ok && slices.Contains(metaFields, name)
	})...)
}

// metaFields are the fields of metadata that informers need.
var metaFields = []string{
	"name", "namespace", "uid", "resourceVersion", "generation", "deletionTimestamp", "labels",
	"ownerReferences", "finalizers",
}

// missingMetadata returns a field of metadata that informers need and a type does not have.
func missingMetadata(t reflect.Type) string {
	if t.Kind() != reflect.Struct {
		return "name"
	}
	fields := fieldpath.Fields(t)
	for _, name := range metaFields {
		if !slices.ContainsFunc(fields, func(f fieldpath.Field) bool { return f.Name == name }) {
			return name
		}
	}
	return ""
}

// isOfMetadata reports whether a type is a view with metadata alone, of the types that it has in all
// objects. What is not checked may declare others.
func isOfMetadata(view reflect.Type) bool {
	return CheckView(view, newMetadata()) == nil
}

// wrongKind returns the error of an object of another kind, if that is what err says.
func (d *typedDecoder[T]) wrongKind(err error) (wrong error, ok bool) {
	kind, ok := errors.AsType[*dedup.KindError](err)
	if !ok {
		return nil, false
	}
	return WrongKind(kind.Got, d.gvk), true
}
