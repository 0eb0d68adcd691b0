// Package fieldpath holds the fields that a selection leaves out of its objects, as a tree
// that decoders walk down while they read, and those that a view declares of an API type:
// [CheckView] compares the two types, [Pairs] returns their fields, and a [Projection] makes a
// view of an object that was decoded whole.
//
// A path names fields as JSON does, joined by dots: "metadata.managedFields",
// "spec.containers.env". It goes through lists, which have no step of their own, and ends
// at a field, which is left out whole. [Tree.Check] checks whether a type has the fields.
package fieldpath
