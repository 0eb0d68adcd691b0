// Package inspect has what packages controller, debug and metrics need of an informer beyond its
// public methods: [Informer] and [View]; and [Names], by which pages and metrics tell them apart.
//
// Package tidings sets the variables as it is initialised: an informer can then be inspected by the
// packages of this module, and its public API stays small.
package inspect
