package store

import (
	"errors"
	"fmt"
	"strconv"
)

// Errors of [New] and [Store.AddIndex]. Returned errors wrap them and name
// the index.
var (
	// ErrIndexName is returned for an index whose id is nil, "", or not comparable.
	ErrIndexName = errors.New("an index needs a name or another comparable value as its id")
	// ErrIndexFunc is returned for an index whose function is nil.
	ErrIndexFunc = errors.New("an index needs a function")
	// ErrIndexExists is returned when an index is added under an id that is taken.
	ErrIndexExists = errors.New("index exists already")
)

// IndexError reports that an index function failed for an object, which therefore has
// no entry in that index; the entries of its previous state there are removed too. The
// object itself and its entries in other indexes are not affected.
type IndexError struct {
	Index any    // id of the index
	Key   string // key of the object
	Err   error  // of the function, or a *PanicError
}

func (e IndexError) Error() string {
	return fmt.Sprintf("index %s has no entry for object %.320q: its function failed: %v",
		textOf(e.Index), e.Key, e.Err)
}

// Unwrap returns Err.
func (e IndexError) Unwrap() error { return e.Err }

// PanicError reports that an index function panicked.
type PanicError struct {
	Value any    // of the panic
	Stack []byte // as runtime/debug.Stack writes it, with the place of the panic
}

func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// Unwrap returns the value that the function panicked with, if it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

func indexError(id any, err error) error {
	return fmt.Errorf("store: index %s: %w", textOf(id), err)
}

// textOf returns the id of an index as error messages show it: a name in quotes.
func textOf(id any) string {
	if name, ok := id.(string); ok {
		return strconv.Quote(name)
	}
	return fmt.Sprint(id)
}
