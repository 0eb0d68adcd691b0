// Package contract has tests alone: those of promises that belong to no one package.
//
// numbers_test.go finds every number and duration that a user of this module can give or is given,
// by parsing its packages. Each is tried at its ends, or is listed with the reason for which it is
// not.
package contract
