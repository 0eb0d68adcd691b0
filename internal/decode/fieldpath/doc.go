// Package fieldpath holds the fields that a selection leaves out of its objects, as a tree
// that decoders walk down while they read.
//
// A path names fields as JSON does, joined by dots: "metadata.managedFields",
// "spec.containers.env". It goes through lists, which have no step of their own, and ends
// at a field, which is left out whole. [Tree.Check] checks whether a type has the fields.
package fieldpath
