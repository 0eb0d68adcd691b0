// Package loop has the common parts of controllers on client-go's informers: a queue of keys, and
// workers that reconcile the objects of these keys.
package loop
