// Package deduptest makes random API objects, and defects in their encodings, for the tests of
// package dedup and of the types of other modules.
package deduptest
