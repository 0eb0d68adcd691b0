// Package e2e has the tests that need a real API server.
package e2e
