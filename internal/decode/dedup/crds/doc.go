// Package crds has tests alone: they hold the decoder of JSON against the types of custom
// resources that other projects publish. It is a module of its own because of the modules that it
// requires.
package crds
