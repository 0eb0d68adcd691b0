// Package entries has the state of each entry of a group in a controller: [States]. An entry is a
// slot of objects, or a controller that is led as a whole.
//
// # Concurrency properties
//
// One mutex guards States. It is held for no call to another package.
package entries
