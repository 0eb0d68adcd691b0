// Package seeds has [Flags]: the flags of a test that runs one random history per seed.
//
//	-sim.seeds 1000  or  TIDINGS_SIM_SEEDS=1000   so many, from 1 on
//	-sim.seed 17                                  this one, as a failure printed it
//
// # Concurrency properties
//
// New is called while variables are initialized, before flags are parsed. All may be called
// from several goroutines.
//
// # Memory
//
// Two numbers.
package seeds
