// Package fielddiff compares the fields of two Kubernetes objects: [Diff]
// returns a [Change] of a [Kind] for each difference, with a path as a user would write it,
// [Paths] the paths of single values, and [Format] formats a value on one line.
//
//	old ─▶ maps, as JSON has them ─┐
//	                               ├─▶ walk both at once ─▶ []Change
//	new ─▶ maps, as JSON has them ─┘        equal parts are not entered
//
// # How two objects are compared
//
//  1. Typed objects go through apimachinery's unstructured converter. Unstructured
//     objects and maps are read as they are; nil has no fields.
//  2. Maps are compared key by key, in the order of the keys.
//  3. Two lists whose elements are all objects with the same identifying field (name,
//     type, key, …), unique on both sides, are matched by it, as kubectl does. If only
//     the order differs, the list has one change that names the elements in both orders.
//  4. Other lists are matched by position.
//  5. A value that only one side has, or whose type differs, is one change with the
//     whole value. Everything else leads down to single values.
//
// # Concurrency properties
//
// There is no state: the functions may be called from any goroutine. They change
// nothing that they are given.
//
// # Memory
//
// The values in changes are those of the objects (or of the converted copy of a typed
// object), not copies. Paths are written only for fields that differ.
//
// # What a caller must do
//
// Leave the objects alone during the call, and copy values of changes before writing
// to them.
package fielddiff
