// Package until decides when a wait is over. A [Condition] is a condition of one object in the
// forms of `kubectl wait --for`. A [Goal] is a condition for all objects of
// some selections.
//
//	"condition=Ready" ─▶ Parse ─▶ Condition ─▶ NewGoal ─▶ Goal ─▶ Reached
//	informer ─▶ Handler ─▶ Goal.Set, Goal.Delete ──────────▲
//
// # Conditions
//
//  1. condition=TYPE[=STATUS]: the condition of that type has that status, True by default. A
//     condition that was observed before the object's generation does not count.
//  2. jsonpath=EXPRESSION=VALUE: every value of the expression is VALUE, as text. Without =VALUE,
//     there is a value. Quotes and spaces around VALUE are left out.
//  3. create: the object exists.
//  4. delete: it does not exist.
//
// A goal is reached when each selection has an object and every object meets the condition; for
// delete, when no selection has an object.
//
// # Concurrency properties
//
// A Condition is for one goroutine at a time, a Goal for any. Nothing here starts a goroutine.
//
// # Memory
//
// A Goal keeps the names of all objects, and a short description of each that does not meet the
// condition.
package until
