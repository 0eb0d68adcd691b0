// Package loop is what controllers on client-go's informers have in common: a queue of keys, and
// workers that reconcile the objects of these keys.
package loop
