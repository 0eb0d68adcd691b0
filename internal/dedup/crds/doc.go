// Package crds has tests alone: they hold the decoder of JSON against the types of custom
// resources that other projects publish. It is a module of its own because of what it requires.
package crds
