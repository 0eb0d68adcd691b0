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

// NewView returns a source of views of the objects of resource: of objects of the Go type that make
// returns, which declares the fields that are read. whole is an object of the API type, such as
// new(corev1.Pod). It is nil if there is no Go type of it: then objects come in JSON, and what the
// view declares is not checked. If the type is no view, as [CheckView] says, or RESTOptions.Drop is
// set, every List and Watch fails with the reason.
//
// The server is asked for metadata alone, if the view has nothing else, and without managed fields,
// if it does not declare them: see RESTOptions.DropManagedFields.
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
	o.DropManagedFields = err == nil && !declaresManagedFields(t)
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
	s.identifiable, s.identifiableInJSON = identifiable(reflect.TypeOf(whole)), true
	s.objectSize += int64(t.Elem().Size())
	return s
}

// readViews makes a new decoder one of views of objects like whole, which is nil if they have no Go
// type.
func (d *typedDecoder[T]) readViews(
	whole runtime.Object, table *Table, sharing Sharing,
) (err error) {
	if whole == nil {
		d.read(d.make(), table, sharing)
		d.structs, err = d.structs.Unchecked()
		return err
	}
	d.read(whole, table, sharing)
	if d.structs, err = d.structs.View(d.make()); err == nil && d.isProtobuf {
		d.shared, err = d.shared.View(d.make())
	}
	return err
}

// CheckView returns an error if a Go type is no view of the API type of whole, or no view at all, if
// whole is nil. The error names the path of the field, both types and the remedy.
//
// A view is a pointer to a struct. Each field is tagged with its name in the API, and has the type of
// the API. A struct may be another one with fewer fields, and a named string may be a string. The
// metadata includes all fields of tidings.Meta.
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
			return fmt.Errorf("%q: %v has no field %q, which informers need: embed tidings.Meta, or a "+
				"struct that embeds it with the tag `json:\",inline\"`", f.Name, f.Type, missing)
		}
	}
	return nil
}

// DeclaredFields returns the paths of the fields that a view declares. "metadata" stands for the
// fields of metadata that each view has.
func DeclaredFields(view reflect.Type) []string {
	paths := slices.DeleteFunc(fieldpath.Declared(view), func(path string) bool {
		rest, ok := strings.CutPrefix(path, "metadata.")
		name, _, _ := strings.Cut(rest, ".")
		return ok && slices.Contains(metaFields, name)
	})
	return append([]string{"metadata"}, paths...)
}

func declaresManagedFields(view reflect.Type) bool {
	return slices.ContainsFunc(fieldpath.Declared(view), func(path string) bool {
		return strings.HasPrefix(path, "metadata.managedFields")
	})
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

// isOfMetadata reports whether a type is a view of metadata alone. A field that is not one of all
// metadata makes it another view.
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
