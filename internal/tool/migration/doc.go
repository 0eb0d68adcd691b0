// Package migration moves programs of others to Tidings as a user does, in copies of their modules:
// [Replace] changes their files. It is for tools that test and measure such programs.
//
//	module cache ── Download, CopyModule ──▶ copy ── Imports or NewCache ──▶ go build, go test
//
// [Imports] replaces the imports that docs/migrate.md names. [NewCache] sets the option of managers
// of controller-runtime. Nothing else of a file changes.
//
// # Concurrency properties
//
// All functions may be called from any goroutine, for different directories.
//
// # Memory
//
// Nothing is held between calls. One file is in memory at a time.
package migration
