// Package fanout delivers every change of a collection to many handlers. A [Log] takes batches of
// changes, and each [Subscription] calls its handler with them. A [Policy] in [SubscriptionOptions]
// decides about handlers that are too slow. [Stats] and [Panic] report on a handler.
//
// It knows no Kubernetes and no cache. The publisher updates the cache, publishes, and so calls
// every handler after the cache holds the change.
//
// # Structure
//
//	Publish ───────────────────────────────────────┐
//	                                               ▼
//	     chunk              chunk              chunk (tail)
//	   ┌─────────────┐    ┌─────────────┐    ┌─────────────┐
//	   │ 32 33 … 95  │───▶│ 96 97 … 223 │───▶│ 224 … end   │   filled up to Log.end
//	   └─────────────┘    └─────────────┘    └─────────────┘
//	          ▲                   ▲                     ▲
//	       cursor              cursor                cursor
//	          │                   │                     │
//	       handler A           handler B             handler C
//
//	   handler D, stuck, beyond its limit, off the log:
//
//	   cursor ─▶ update x ⇄ delete y ⇄ add y ⇄ update z   ◀─ Publish folds here
//
// The log is a list of chunks that are linked forward only. A subscription is a cursor in it and
// one goroutine. Where a notification stands is its number, counted from the log's beginning; the
// synced mark and a resync stand before a number and are kept by the subscription they are for, so
// that an entry of the log is a notification and nothing else.
//
// # Algorithms
//
// Publish:
//
//  1. Copy the batch behind the last entry, adding chunks of 32 to 256 entries.
//  2. Store the new end. This makes the batch visible, whole.
//  3. For each subscription on the log: if its goroutine is parked, wake it; if more is pending
//     than its limit, which by default grows with each live key, and its policy folds, take it off
//     the log (see below).
//  4. For each subscription off the log: fold the batch into its backlog.
//
// The goroutine of a subscription:
//
//  1. Initial set: call the handler for each object of the snapshot, pulling 64 at a time from its
//     cursor, and let go of it.
//  2. Take a run: everything from the cursor to the end of the chunk, of the log, or to the next
//     mark, as a slice of the chunk's array. Move the cursor.
//  3. Call the handler for each entry of the run, without a lock.
//  4. At the synced mark, close Synced. At a resync, deliver its snapshot as in 1.
//  5. With nothing left, park. The last one to park clears the entries of the tail.
//
// Off the log and back:
//
//  1. Everything between cursor and end is folded into a backlog, as its [Policy] says: a list in
//     which each key knows the entries that can still change. The cursor is let go of. A resync
//     that had not begun is dropped, and owed.
//  2. Notifications that are published from then on are folded in too.
//  3. The goroutine takes runs of 64 from the front. Notifications that it has taken fold no more.
//  4. With the list empty, the cursor is put at the end of the log, under the lock that publishing
//     takes. A resync that is owed is due at once.
//
// # Concurrency properties
//
//   - Each handler is called by one goroutine, one call at a time, in the order of publication.
//     Handlers do not wait for each other.
//   - Publish, MarkSynced, Replay and AwaitRoom are for one publisher, which calls them one at a
//     time. Only AwaitRoom waits for handlers, and only for those with the policy Block.
//   - Subscribe, Remove, Close, Wait, Stats and the rest are for any goroutine, handlers included.
//     No lock is held while a handler, OnPanic or an iterator runs. UID is called with locks held.
//   - A subscription receives exactly the changes that are published after Subscribe. The caller
//     guarantees that its initial set is the state before that.
//   - A wake-up is sent at most once a batch, and none to a goroutine that runs.
//   - A panic is reported and crashes the process, or costs one notification if it is isolated. A
//     handler that ends its goroutine with runtime.Goexit loses that notification and is called
//     with the next one on a new goroutine.
//
// Less formally: publishing is cheap and never stuck, and no handler has an effect on another one.
// Publish takes longer with each handler off the log, by a map look-up per notification. The
// Publish that takes a handler off the log folds its whole backlog before it returns.
//
// # Memory
//
//   - The log keeps the notifications between the last cursor and its end, in whole chunks. With
//     every handler idle it keeps no object, and at most one chunk of 32 empty entries.
//   - While handlers work, one that has delivered everything and waits keeps nothing that a working
//     one does not keep.
//   - A handler on the log keeps at most its limit, the batch that takes it off the log, and a
//     chunk. The default limit has one notification for each live key in it.
//   - A call that never returns keeps the chunk it was taken from, 256 notifications at most, and
//     its backlog. ConflateState: one entry for each key that the handler knows or that lives.
//     ConflateUpdates: at most two for each key that the handler knows (update, delete) and two for
//     each that lives (add, update), and up to three for each lifetime that began and ended since:
//     these are the part without a bound, counted in Stats.Unseen.
//   - A subscription in its initial set or a resync keeps that snapshot until it has been through
//     it.
//   - For a T of one pointer, an entry of the log takes 40 bytes, one of a backlog 64 and, while
//     something can fold into it, a map entry. An idle subscription takes about 1.7 KB, its parked
//     goroutine included, and 2 KB of stack. Publish allocates only chunks; delivery allocates
//     nothing.
//
// # What a caller must do
//
//   - Publish changes in order: for one key Added, Updated, Deleted in a sequence that makes sense,
//     each Old the New before it.
//   - Hold off publishing between taking the snapshot for Subscribe or Replay and the call, so that
//     the snapshot is the state at the end of the log.
//   - Call MarkSynced once, after the batch that completes the first list.
//   - Call Replay for the subscriptions that DueForResync returns, and look at NextResync again
//     after that and when ResyncChanged receives.
//   - Call Close, then Wait. Treat the objects as read-only.
package fanout
