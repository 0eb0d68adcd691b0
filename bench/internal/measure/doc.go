// Package measure measures time and memory: a [Usage] is what the process used for something.
//
// # Concurrency properties
//
// The figures are those of the whole process. Nothing else should run in it meanwhile.
//
// # Memory
//
// Nothing is kept.
package measure
