// Package forward writes the source of a package that exports the names of client-go's tools/cache:
// [Generate] returns the text, [Output] is the file it belongs in, and [Load] reads packages as the
// compiler sees them, also for the mutants.
//
//	go list -export ──▶ types of tools/cache ─┐
//	                                          ├─▶ aliases, constants, variables, functions ──▶ gofmt ──▶ type check
//	its sources ──────▶ deprecated names ─────┘                    ▲
//	                                                   tables.go: ours, variables
//
// # How a name is forwarded
//
//  1. The go command compiles tools/cache, at the version of go.mod, and reports the file of its
//     export data. So nothing is type-checked from sources, and aliases and the names of parameters
//     are there.
//  2. A type becomes an alias, a generic type a generic alias with the same type parameters. A
//     constant becomes a constant. An error becomes a variable with the same value.
//  3. A function becomes a function with the same signature that calls it. Functions that look at
//     their caller (listed in the table variables, with reasons) become variables instead, because
//     a function of ours would be the caller.
//  4. The names in the table ours are left out.
//  5. A name whose source says that it is deprecated is deprecated here too.
//  6. The text is type-checked against the same export data before Generate returns it.
//
// An exported variable that is not an error, a parameter without a name and a missing name in a
// table are errors: each needs a decision, which the message names.
//
// # Concurrency properties
//
// The functions hold no state and may be called from any goroutine. They run the go command, end it
// when their context ends, and write no files of their own.
package forward
