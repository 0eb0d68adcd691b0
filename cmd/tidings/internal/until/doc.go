// Package until says when a wait is over: a [Condition] is what one object is to be, as
// the command line writes it, and a [Goal] is that condition for all the objects of some
// selections, kept up with every change to them.
//
//	"condition=Ready" ─▶ Parse ─▶ Condition ─▶ NewGoal ─▶ Goal ─▶ Reached
//	informer ─▶ Handler ─▶ Goal.Set, Goal.Delete ──────────▲
//
// # What can be waited for
//
// The forms are those of `kubectl wait --for`:
//
//  1. condition=TYPE[=STATUS]: the condition of that type has that status, True if none
//     is given. A condition that was observed before the object's present generation
//     says nothing yet.
//  2. jsonpath=EXPRESSION=VALUE: every value that the expression finds is that value as
//     text. Without =VALUE it only has to find one.
//  3. create: the object is there.
//  4. delete: it is not.
//
// # When a goal is reached
//
// A goal has one or more selections, which are followed by an informer each. It is
// reached when each of them has at least one object and every object of each meets the
// condition; for delete, when none of them has an object.
//
// # Concurrency properties
//
// A Condition is for one goroutine at a time. A Goal may be used from any goroutine. Nothing here starts one.
//
// # Memory
//
// A Goal keeps the name of each object that does not meet its condition, and of each that
// does.
package until
