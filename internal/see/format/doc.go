// Package format writes numbers, sizes, durations and times of day as the pages of package debug and
// the command show them.
//
// Functions with a parameter of type any take any type of integers: templates call them.
package format
