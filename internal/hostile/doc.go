// Package hostile has no code of its own. Its test runs informers of every kind, and
// client-go's beside them, against a server that answers as it likes for ten minutes of
// virtual time and then turns honest.
//
//	attack ──▶ apisim ──▶ informers: native, drop-in, client-go
//	                │            │
//	                ▼            ▼
//	            requests     heap, health, time until the cache is the server's state
//
// # What is compared
//
//  1. Requests: an informer sends no more than client-go's does, or than one in ten
//     seconds, whichever is more.
//  2. Heap: what an attack takes at its peak stays below a bound for all attacks.
//  3. Health: the informer says that it is in trouble, in a text that is bounded.
//  4. Cache: where watches alone are attacked, lists keep it in step.
//  5. Recovery: when the server is honest again, the cache is its state within minutes.
//
// # How to run it
//
//	go test ./internal/hostile
//	go test ./internal/hostile -run TestHostileServers -v -hostile.table   # the table of docs/security.md
//
// # Concurrency properties
//
// Attacks run one after the other, as the heap is that of the process.
//
// # Memory
//
// The answers of an attack are made once.
package hostile
