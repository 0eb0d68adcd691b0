// Package measure measures time and memory: a [Usage] is the time and memory that the process used
// for a function.
//
// # Concurrency properties
//
// The figures are those of the whole process. Nothing else should run in it meanwhile.
//
// # Memory
//
// Nothing is kept.
package measure
