// Package inspect has the methods of an informer that packages controller, debug and metrics need
// beyond its public ones: [Informer] and [View]; and [Names], by which pages and metrics tell
// informers apart.
//
// Package tidings sets the variables as it is initialised: an informer can then be inspected by the
// packages of this module, and its public API stays small.
package inspect
