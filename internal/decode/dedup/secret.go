package dedup

import (
	"cmp"
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
	errUnknownKind = errors.New("the kind of the object is not known: it may be a Secret")
)

// IsSecret reports whether objects are Secrets, or lists of them, by their API group and the
// plural name of their resource, or their kind; "" is an unknown name. It is the one rule for
// everything that must not be shared or shown.
func IsSecret(group, resource, kind string) bool {
	return group == "" && (resource == "secrets" || kind == "Secret" || kind == "SecretList")
}

// apiTypes begins the import paths of the Go types of the built-in resources.
const apiTypes = "k8s.io/api/"

func isSecretType(t reflect.Type) bool {
	return t.PkgPath() == apiTypes+"core/v1" && IsSecret("", "", t.Name())
}

// mayHoldSecret reports whether a Secret may be decoded into this type: maps, or a struct
// outside k8s.io/api that has a field for the data, or no field that Secrets lack.
func mayHoldSecret(t reflect.Type) bool {
	switch {
	case strings.HasPrefix(t.PkgPath(), apiTypes):
		return false
	case isUnstructured(t):
		return true
	}
	onlySecretFields := true
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case strings.EqualFold(cmp.Or(name, f.Name), "data"),
			strings.EqualFold(cmp.Or(name, f.Name), "stringData"):
			return true
		case f.Type == typeMeta, f.Type == objectMeta:
		case name == "type", name == "immutable", name == "-":
		default:
			onlySecretFields = false
		}
	}
	return onlySecretFields
}

var (
	typeMeta   = reflect.TypeFor[metav1.TypeMeta]()
	objectMeta = reflect.TypeFor[metav1.ObjectMeta]()
)

func isUnstructured(t reflect.Type) bool {
	return reflect.PointerTo(t).Implements(reflect.TypeFor[runtime.Unstructured]())
}

// hasKind reports whether objects of a type have a kind. Others may have a method for it that
// they cannot serve, from an interface that they embed.
func hasKind(t reflect.Type) bool {
	f, ok := t.FieldByName("TypeMeta")
	return isUnstructured(t) || ok && f.Type == typeMeta
}

// MayBeSecret reports whether an object, which is not nil, may be a Secret. The kind of the object
// decides. If it has none, its Go type decides, unless noSecrets says that such objects are no
// Secrets.
func MayBeSecret(obj any, noSecrets bool) bool {
	t := reflect.TypeOf(obj)
	if t.Kind() != reflect.Pointer || t.Elem().Kind() != reflect.Struct {
		return !noSecrets
	}
	return isSecretType(t.Elem()) || checkKind(obj, mayHoldSecret(t.Elem()) && !noSecrets) != nil
}

// checkKind returns an error if an object is a Secret by its kind, or has no kind and may hold a
// Secret.
func checkKind(obj any, mayHold bool) error {
	var kind schema.GroupVersionKind
	if o, ok := obj.(runtime.Object); ok && hasKind(reflect.TypeOf(obj).Elem()) {
		kind = o.GetObjectKind().GroupVersionKind()
	}
	_, metadata := obj.(*metav1.PartialObjectMetadata)
	if metadata && kind.Group == metav1.GroupName {
		kind.Kind = "" // its own, whatever the object is
	}
	switch {
	case IsSecret(kind.Group, "", kind.Kind):
		return errSecret
	case kind.Kind == "" && mayHold:
		return errUnknownKind
	}
	return nil
}
