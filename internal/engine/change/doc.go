// Package change has [Change], the one type of a change: the delta queue settles it, the
// fan-out log delivers it, and handlers receive it.
package change
