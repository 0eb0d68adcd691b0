// Package engine composes an informer of the packages below it.
package engine
