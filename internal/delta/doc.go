// Package delta orders what a producer learns about a collection and hands it on as settled batches: a [Queue] takes
// each [Change], [Item] and [Mark] in order of arrival and gives its one consumer a [Batch] of [Delta] values,
// resolved against the [Known] state, where every delta says what was, what is, and whether that is an add, an update or a delete.
//
// The package knows no Kubernetes. A producer is usually a reflector, the consumer a cache; Known is a snapshot of that cache.
//
//	producers, one per scope                            the consumer
//	  Push     ─┐
//	  Replace  ─┤   ┌───────┬─────────┬───────┬──────┐    Pop: the first segment ──► resolve ──► process(Batch)
//	  Bookmark ─┼──►│ run 4 │ replace │ run 2 │ run 1│──►             ▲                 │
//	  Resync   ─┘   └───────┴─────────┴───────┴──────┘                │   Known()       │ after process has returned:
//	                 segments: each becomes one Batch             the cache ◄───────────┘ versions, synced, Len, room
//
// A scope is a key prefix that has a producer of its own, for example a namespace; the scopes of a queue do not overlap. They can be
// added and removed at any time, and all replaced at once: a removal stands in line with the changes, and deletes all that is known of its scopes.
//
// # What becomes of a change
//
//  1. Push adds changes, a run of watch events, to the run at the end of the queue. A Replace (a relist) is a segment of its
//     own, so it is staged and atomic. A Resync token ends the run it is added to. A Bookmark only moves the version of the last segment.
//  2. Pop takes the first segment and asks Known once. What several changes of one key in a run leave behind is
//     remembered beside Known, so each is resolved against the state its predecessor leaves.
//  3. A Set of a key that is known is Updated, of one that is not Added. Whether the producer called it an add or a
//     modification does not matter. A changed UID under one key is an Updated whose Old and New differ in UID (P19).
//  4. A Delete of a key that is known is Deleted: Old is the known state, New the final one as it was sent. A Gone is the same where
//     the final state cannot be used: Old and New are the known state, and the delta is a tombstone.
//  5. What says nothing new is dropped and counted (see [Queue.Stale]): a change older than the known state, a Set of the same
//     non-empty UID and an equal version, the Delete or Gone of an unknown key, a Set of an unknown key not newer than its recent delete,
//     and one older than the last list of its scope, which would have named it.
//     A Delete whose version equals the known one is applied: some servers send the last state instead of the final one.
//     Versions that [Options.Compare] cannot compare are not compared: what arrives is applied (P2).
//
// # What a Replace does
//
//  1. A list older than the version its scope has reached, counting what is pending, is refused with [ErrOlder]: the cache
//     holds more than it can say, and a key deleted since would come back.
//  2. The items are ordered by key where they are not already. Of several with one key the newest holds, or the last where versions do not compare.
//  3. Pop walks items and Known.Prefix(scope) side by side, without a table of keys. Known objects that the list does not name are
//     tombstones: Deleted with the last known state. An item newer than the known state, or not comparable with it, is an
//     Updated; one of the same non-empty Version and UID is unchanged and says nothing, unless [Options.ReportUnchanged] is set.
//  4. A known state that is newer than the item, or newer than the list that does not name it, stays: the list is from before it (P2).
//  5. The known state of a key in [ReplaceOptions].Stays stays: the list has that object, in a state that cannot be used.
//     An item of that key counts, and a new history does not leave a state of the old one behind.
//  6. Deletes come first, then the rest, both ascending by key, all in one batch (P8).
//  7. With [ReplaceOptions].NewHistory the versions of before mean nothing (P16): everything in the list holds, each item of a known key
//     is an Updated (an equal version may name another state), the memory of deletes in the scope is emptied, and later changes are compared with the new versions.
//
// # Folding and backpressure
//
// When more than [Options.FoldAbove] changes are pending, a Set replaces, in place, the last pending change of its key where
// that is an update of the same incarnation: a Set of the same non-empty UID, preceded in the same run by another one that established it (and that
// was not a replay: it came after the version its scope had reached, which is therefore to be given with each Push). So
// of any key at most the first and the newest state of an incarnation are pending in a run, and adds, deletes and changes of UID all stay (P10).
// Nothing folds across a Replace or a Resync. The order between keys is not promised when changes fold; that of one key always is.
//
// When [Options.Limit] changes or more are pending, Push, Replace and Bookmark wait, in order of arrival, until there are fewer. One that is let in
// is taken whole, so a list of any length is taken, and at most one producer's call stands above the limit.
//
// # Concurrency properties
//
// All methods may be called from any goroutine. Pop is for one goroutine at a time; a second one gets [ErrBusy]. The queue starts no
// goroutines. Its mutex is never held while Known, Describe or process runs; Compare may be called with it held.
//
// In plain words: producers only append, and they wait when the consumer is far behind. The consumer alone works out what changed, so there is one
// place that knows the order. Nothing is said to be reached (a version, the initial set, room in the queue) before the consumer has said that it is applied, by returning.
//
// If process panics (or ends its goroutine), the panic passes through Pop and the queue is closed: how much of the batch was applied is known to nobody, so it is
// neither handed out again nor counted as reached. Versions and Synced stay as they were before that Pop, what was not taken yet is dropped as by Close, the lost batch
// stays visible in List, and every later call returns an error that is ErrClosed and names the panic.
//
// # Memory
//
// A pending change takes 64 bytes plus its object for a pointer-like T; a delta 40. The arrays of both are reused between
// pops up to 4,096 entries and cleared of references. A Replace keeps the items it was given, no copy, and adds one delta per object that changed;
// unchanged objects cost nothing more, and one delta with [Options.ReportUnchanged]. Deltas of known keys have the known key, so that nothing keeps an item's. The memory of deletes is bounded by [Options.RememberDeletes].
//
// # What a caller must do
//
//   - Call Pop in a loop from one goroutine and apply each batch completely before process returns.
//   - Keep nothing of a Batch after process has returned: its slices are reused.
//   - Answer Known with the state after the last processed batch, iterated ascending by key, not changed while it is read.
//   - Push each scope's changes in the server's order, from one goroutine per scope, and leave a slice given to Replace alone.
//   - Answer ErrOlder by listing again; a producer that left unchanged objects out of decoding by giving the known one back must not do so with NewHistory.
package delta
