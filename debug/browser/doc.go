// Package browser has tests of the pages of package debug in Chromium. It is a module of its own,
// because of the driver of the browser.
//
//	go test ./...                        the tests
//	go test -run Pages -pictures ../../docs/debug   pictures of the pages, for the documentation
//
// The tests look for Chromium at the paths of its installers. On Debian, apt-get install chromium
// installs it.
//
// # Concurrency properties
//
// The tests run one after the other, in one browser.
//
// # Memory
//
// The tests need the memory of a browser.
package browser
