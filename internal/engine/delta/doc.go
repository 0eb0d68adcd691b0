// Package delta orders the events that producers report about a collection and hands them on as
// settled batches. A [Queue] takes each [Event] and each list of [Item] values in order of arrival
// and gives its one consumer a [Batch] of changes, resolved against the [Known] state. A [Mark] has
// the version that a partition has reached.
//
// The package knows no Kubernetes. A producer is usually a reflector, the consumer a cache;
// Known is a snapshot of that cache.
//
//	producers, one per partition                     the consumer
//	  Push     ─┐
//	  Replace  ─┤   ┌───────┬─────────┬───────┐    Pop: resolve ──► process(Batch)
//	  Bookmark ─┼──►│ run 2 │ replace │ run 1 │──►        ▲              │
//	  Resync   ─┘   └───────┴─────────┴───────┘           │ Known()      │ afterwards: Len,
//	             segments: each becomes one Batch     the cache ◄────────┘ room for producers
//
// A partition is a key prefix with a producer of its own, for example a namespace. The
// partitions of a queue do not overlap. They can be added and removed at any time, and all
// replaced at once. A removal is queued behind the changes before it, and deletes everything
// known of its partitions.
//
// # How an event is resolved
//
//  1. Push adds events to the run at the end of the queue. A Replace (a relist) is a segment
//     of its own, so it is staged and atomic. A Resync token ends the run it is added to. A
//     Bookmark only moves the version of the last segment.
//  2. Pop takes the first segment and calls Known once. Each event of a run is resolved
//     against the state that the events before it leave.
//  3. A Set of a known key is Updated, of an unknown one Added. A changed UID under one key
//     is an Updated whose Old and New differ in UID (P19).
//  4. A Delete of a known key is Deleted: Old is the known state, New the final one. A Gone
//     is the same where the final state cannot be used: Old and New are the known state, and
//     the change is a tombstone.
//  5. Events that bring nothing new are dropped and counted, see [Queue.Stale]: an event older
//     than the known state; a Set of the same non-empty UID and an equal version; the Delete
//     or Gone of an unknown key; a Set of an unknown key that is not newer than its recent
//     delete, or older than the last list of its partition, which would have named it.
//     A Delete whose version equals the known one is applied: some servers send the last
//     state instead of the final one. Versions that [Options.Compare] cannot compare are not
//     compared: the event is applied (P2).
//  6. A Merged is a Set from a list of some objects of the partition, beside its watch. It may be
//     older than the partition's last list, which did not ask for that object.
//  7. An [Unusable] state leaves the known one, unless that is of another incarnation: then it ends.
//     The queue remembers the object until a later state of it can be used, or it is gone or not
//     listed. Its delete is one of the known state, if there is one.
//  8. [Queue.Leave] ends known objects that exist, and are not wanted any more: tombstones that are
//     marked as moved. The memory of deletes does not have them.
//
// # How a Replace is resolved
//
//  1. A list older than the version its partition has reached, pending events included, is refused
//     with [ErrOlder]. A key deleted since would come back.
//  2. The items are ordered by key where they are not already. Of several with one key the
//     newest holds, or the last where versions do not compare.
//  3. Pop walks items and Known.Prefix(partition) side by side, without a table of keys. Known
//     objects that the list does not name are Deleted, as tombstones. An item newer than the
//     known state, or not comparable with it, is Updated. One of the same non-empty version
//     and UID is unchanged and not reported, unless [Options.ReportUnchanged] is set.
//  4. A known state stays if it is newer than the item, or newer than the list that does not
//     name it: the list is from before it (P2).
//  5. The objects in [ReplaceOptions].Stays are unusable, and no others are, unless they are later
//     than the list. An item of that key counts, and a new history does not keep a state of the
//     old one.
//  6. Deletes come first, then the rest, both ascending by key, all in one batch (P8).
//  7. With [ReplaceOptions].NewHistory, versions from before mean nothing (P16): everything in
//     the list holds, each item of a known key is Updated (an equal version may name another
//     state), the memory of deletes in the partition is emptied, and later events are compared
//     with the new versions.
//
// # Backpressure
//
// When [Options.Limit] changes or more are pending, Push, Replace and Bookmark wait, in order
// of arrival, until there are fewer (P10). A call that is admitted is taken whole, so a list of
// any length is taken, and at most one producer's call goes over the limit.
//
// # Concurrency properties
//
// All methods may be called from any goroutine. Pop is for one goroutine at a time; a second
// one gets [ErrBusy]. The queue starts no goroutines. Its mutex is never held while Known,
// Describe or process runs; Compare may be called with it held.
//
// Less formally: producers only append, and wait when the consumer is far behind. The consumer
// alone works out the changes. Nothing counts as reached before the consumer has applied it.
//
// If process panics or ends its goroutine, the panic passes through Pop and the queue is
// closed, because it is not known how much of the batch was applied. The batch is not handed out
// again and still counts in Len. Later calls return an [ErrClosed] that mentions the panic.
//
// # Memory
//
// A pending event takes 88 bytes plus its object for a pointer-like T; a change 40. The arrays
// of both are reused between pops up to 4,096 entries and cleared of references. A Replace
// keeps the items it was given and adds one change per object that changed. Unchanged objects
// cost one change with [Options.ReportUnchanged], else nothing. Changes of known keys have the
// known key, so that they keep no item's. [Options.RememberDeletes] bounds the memory of deletes.
//
// # What a caller must do
//
//   - Call Pop in a loop from one goroutine, and apply each batch before process returns.
//   - Keep nothing of a Batch after process has returned: its slices are reused.
//   - Return from Known the state after the last processed batch, iterated ascending by key,
//     not changed while it is read.
//   - Push each partition's events in the server's order, from one goroutine per partition, and
//     do not use a slice given to Replace again.
//   - After ErrOlder, list again. A producer that skips decoding of unchanged objects by giving
//     the known ones back must not do so with NewHistory.
package delta
