// Package inspect has the methods of informers and factories that packages controller, debug and
// metrics need beyond the public ones: [Informer], [View] and [Factory]; and [Names], by which
// pages and metrics tell informers apart.
//
// The method Inspect of a *tidings.Informer, of a *tidings.Factory and of the drop-ins returns
// them, so that the public API stays small.
package inspect
