// Package house has no code of its own. Its tests compare the repository with the statements of
// its pages, and the pages with the code:
//
//	architecture_test.go   the import walls (walls_test.go), the comment of every package, and the
//	                       packages in ARCHITECTURE.md
//	methods_test.go        the types whose methods stand in many files
//	contract_test.go       the contracts of informers and of controllers, with their places
//	                       in the code and their tests
//	docs_test.go           links, the Go code in README.md and docs, the index of
//	                       docs, and the reasons for dependencies
//	programs_test.go       the programs in README.md and docs: their tests and outputs, and that
//	                       they read a server and end at SIGTERM
//	tests_test.go          the tests that comments, pages and the Makefile name
//	licences_test.go       the licences of dependencies
//
// They run in the root of the repository and use the go command. `make docs` runs
// them alone.
//
// # Concurrency properties
//
// Each test makes the root its working directory, so they run one after the other.
//
// # Memory
//
// Nothing is held between tests.
package house
