// Package ctrlruntime puts Tidings behind the cache of controller-runtime's manager: [NewCache] is
// the value of ctrl.Options.NewCache, [NewClient] that of ctrl.Options.NewClient, and [Informers]
// returns the [InformerSet] of such a cache, for health, waits, metrics and the pages of package
// debug.
//
// # Usage
//
//	mgr, err := ctrl.NewManager(config, ctrl.Options{
//		NewCache:  ctrlruntime.NewCache,
//		NewClient: ctrlruntime.NewClient, // if reads are to wait for the writes before them
//	})
//
// # Parts
//
//	ctrl.Options.NewCache ──▶ NewCache ──▶ controller-runtime's cache.New
//	                                          │ options, namespaces, deep copies, errors
//	                                          ▼ NewInformer
//	                          ListerWatcher ──▶ probe ──▶ path, selectors, encoding
//	                                          │
//	       source.REST, one table for all ◀───┘
//	          ▼
//	       drop-in informer ──▶ indexer ──▶ Get, List
//
// The cache is controller-runtime's own: every option, method and error is that of its cache.New.
// Three parts are from this module: the reads from the API server, the memory that objects share,
// and List by labels and owners.
//
// # How an informer is made
//
//  1. controller-runtime makes a ListerWatcher for each type, namespace and form (Go type, maps,
//     metadata), and asks for an informer of it.
//  2. The ListerWatcher is called once for a list and once for a watch, with a context that the
//     transport of its HTTP client recognises. The transport records these two requests and
//     answers them itself with 204 No Content. They take no tokens of the rate limit.
//  3. A [source.REST] is made of their path, selectors, encoding and bookmarks. It
//     decodes protobuf for built-in types and JSON for custom ones. All sources of a cache share
//     one [source.Table].
//  4. If the requests are not those of a list and a watch of one resource, the informer uses the
//     ListerWatcher itself. With the option NewInformer, it is the informer of the option. Both are
//     logged, and the health of the informer says why.
//
// # Lists by labels and owners
//
//  1. List with a label selector of apimachinery that names values of a label, as app=web or tier
//     in (a,b), and without a field selector, gets a field selector that only the indexer of step 2
//     knows.
//  2. controller-runtime's reader looks it up as an index. The indexer yields the objects under
//     the value with the fewest objects; the first such List adds an index of a label. An informer
//     has up to 8 of them.
//  3. The reader tests each object with the whole selector, applies the limit, and copies.
//
// List with client.MatchingFields{[OwnerField]: uid} needs no IndexField.
//
// # Reads that wait for writes
//
//		client ── Create, … ──▶ recorder ──▶ guard ──▶ API server
//		  │                        │ outcome               ▲
//		  │                        ▼                       │ after 10 s, and about unknown outcomes
//		  └── Get, List ──▶ writes that do not show ───────┘
//		                           │ as soon as they show
//		                           ▼
//		                     cache of NewCache
//
//	 1. The transport of the client of [NewClient] records the outcome of each write, as package
//	    controller/guard does, before the write returns.
//	 2. A read waits for the writes of the objects that it reads, one after the other, in the
//	    informer that it reads from, which it finds as controller-runtime's cache does: by the kind
//	    and the form of the object or list, and the namespace. Package internal/lead/written decides
//	    whether an informer shows a write.
//	 3. A write is forgotten when all informers of its resource show it. Informers that are made later
//	    read the newest state of the server first, so that they show it.
//
// # Concurrency properties
//
// Everything may be called from any goroutine. The package starts no goroutines; those of the
// informers end with the context of the cache's Start. While an index is added, which takes time
// for each object, List of the informer waits.
//
// # Memory
//
// The client keeps about 300 bytes for each write that an informer does not show. An index of a
// label costs about 90 bytes for each object that has it. Cached objects share equal
// parts with all objects of the cache.
//
// # What a caller must do
//
// Never change an object that was read with UnsafeDisableDeepCopy, nor any part of it: other
// objects share its parts. controller-runtime requires the same.
package ctrlruntime
