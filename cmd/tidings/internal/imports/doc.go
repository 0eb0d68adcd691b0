// Package imports finds the packages of a program that import client-go's informers: a [Package]
// says what it imports and which informers it makes. [Find] asks the go command for the packages.
//
//	go list -deps ─▶ packages with imports ─▶ Find ─▶ Package
//	                 their sources ─▶ constructors ──▲
//
// # How a package is judged
//
//  1. `go list -deps` lists the packages of the module and all that they import, in a vendor
//     directory, too. Tests count for the packages that were asked for.
//  2. A package is found if it imports [Paths], or a package of a group below informers. Those of
//     client-go and the drop-ins of Tidings are left out: they import each other.
//  3. The constructors of informers and reflectors in its sources are those that it makes, also
//     where it only passes them on. A package without any uses types, which client-go and Tidings
//     share.
//
// # Concurrency properties
//
// Everything here is a value. Find runs one process and waits for it.
package imports
