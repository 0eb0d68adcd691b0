// Package tidingstest tests informers by the contract: [Run] has informers of every
// [Kind] follow any [Server], apisim or a real one, and fails the test where a property
// does not hold; [Tests] are the same, one by one. It is to informers what
// testing/fstest is to file systems.
package tidingstest
