// Package imports finds the packages of a program that import client-go's informers: a [Package]
// has its imports of client-go and the constructors of informers that it uses. [Find] runs the go
// command to list the packages.
//
//	go list -deps ─▶ packages with imports ─▶ Find ─▶ Package
//	                 their sources ─▶ constructors ──▲
//
// # Criteria
//
//  1. `go list -deps` lists the packages of the module and all their dependencies, also those in a
//     vendor directory. Tests count for the packages that match the patterns.
//  2. A package is found if it imports [Paths], or a package of a group below informers. Packages
//     of client-go and the drop-ins of Tidings are left out: they import each other.
//  3. The constructors of informers and reflectors in its sources count, also where it only passes
//     them on. A package without any uses types, which client-go and Tidings share.
//
// # Concurrency properties
//
// Everything here is a value. Find runs one process and waits for it.
package imports
