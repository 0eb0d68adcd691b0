package dedup

import (
	"errors"
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	// errSecret is why Secrets, and types that contain them, are not shared: nothing of
	// them is to be in a table.
	errSecret      = errors.New("secrets are not shared")
	errUnknownKind = errors.New("it does not say what kind of object it is: it may be a Secret")
)

// IsSecret reports whether objects are Secrets, or lists of them, by their API group and the
// plural name of their resource, or their kind; "" is a name that is not known. It is the one
// rule for what nothing is shared of and nothing is shown of.
func IsSecret(group, resource, kind string) bool {
	return group == "" && (resource == "secrets" || kind == "Secret" || kind == "SecretList")
}

// apiTypes begins the import paths of the Go types of the built-in resources.
const apiTypes = "k8s.io/api/"

// isSecretType reports whether a Go type is that of Secrets.
func isSecretType(t reflect.Type) bool {
	return t.PkgPath() == apiTypes+"core/v1" && IsSecret("", "", t.Name())
}

// mayHoldSecret reports whether a Secret may be decoded into this type: maps, or a struct outside
// k8s.io/api that has a field for the data, or no field that Secrets lack.
func mayHoldSecret(t reflect.Type) bool {
	switch {
	case strings.HasPrefix(t.PkgPath(), apiTypes):
		return false
	case reflect.PointerTo(t).Implements(reflect.TypeFor[runtime.Unstructured]()):
		return true
	}
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" {
			name = f.Name
		}
		switch strings.ToLower(name) {
		case "data", "stringdata":
			return true
		}
	}
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Type == reflect.TypeFor[metav1.TypeMeta](), f.Type == reflect.TypeFor[metav1.ObjectMeta]():
		case name == "type", name == "immutable", name == "-":
		default:
			return false
		}
	}
	return true
}

// tellsKind reports whether objects of a type have a kind. Others may have a method for it, as
// an interface that they embed has, which nothing stands behind.
func tellsKind(t reflect.Type) bool {
	if reflect.PointerTo(t).Implements(reflect.TypeFor[runtime.Unstructured]()) {
		return true
	}
	f, ok := t.FieldByName("TypeMeta")
	return ok && f.Type == reflect.TypeFor[metav1.TypeMeta]()
}

// secret returns why an object may be a Secret, or nil. It goes by the kind that the object
// tells; of one that tells none, by its Go type and by what is known of all objects.
func (s *Sharer) secret(obj any, mayHold bool) error {
	var kind schema.GroupVersionKind
	if o, ok := obj.(runtime.Object); ok && tellsKind(reflect.TypeOf(obj).Elem()) {
		kind = o.GetObjectKind().GroupVersionKind()
	}
	_, metadata := obj.(*metav1.PartialObjectMetadata)
	if metadata && kind.Group == metav1.GroupName {
		kind.Kind = "" // its own, whatever the object is
	}
	switch {
	case IsSecret(kind.Group, "", kind.Kind):
		return errSecret
	case kind.Kind == "" && mayHold && !s.o.NoSecrets:
		return errUnknownKind
	}
	return nil
}
