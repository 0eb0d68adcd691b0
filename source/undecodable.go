package source

import (
	"encoding/json"
	"errors"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// UndecodableError is the Err of an [Item] whose object is encoded as it should be, but cannot be
// decoded into the Go type of the collection: a field has a value of another type. The item has the
// identity of the object, if that can be read.
type UndecodableError struct {
	// Err names the field, as far as the decoder does.
	Err error
}

// Error returns the text of the cause.
func (e *UndecodableError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *UndecodableError) Unwrap() error { return e.Err }

// IsUndecodable reports whether an item is the state of an object that cannot be decoded, and has
// the identity of the object.
func (i *Item[T]) IsUndecodable() bool {
	_, ok := errors.AsType[*UndecodableError](i.Err)
	return ok && i.Key != ""
}

// itemOf describes the object that was decoded from data: without an envelope in protobuf, or in
// JSON. For an object of another kind, without a name, or that cannot be decoded, the item has an
// error. An error is returned if data is not encoded as it should be: then it may not end where the
// object ends.
func itemOf[T Object](obj T, err error, data []byte, protobuf bool,
	want schema.GroupVersionKind) (Item[T], error) {
	switch {
	case err == nil && obj.GetName() == "":
		return Item[T]{Err: ErrNameless}, nil
	case err == nil:
		return ItemOf(obj), nil
	}
	if _, wrong := errors.AsType[*WrongObjectError](err); wrong {
		return Item[T]{Err: err}, nil
	}
	read := identify
	if !protobuf {
		read = jsonKindOf(want).identify
	}
	id, ok := read(data)
	if errors.Is(err, errNotAskedFor) || protobuf && !ok || !protobuf && !json.Valid(data) {
		return Item[T]{}, err
	}
	item := Item[T]{Err: &UndecodableError{err}}
	if ok {
		item.Key = Key(string(id.namespace), string(id.name))
		item.Version, item.UID = string(id.version), string(id.uid)
	}
	return item, nil
}
