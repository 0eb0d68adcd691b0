// Package hostile has no code of its own. Its test runs informers of every kind, and
// client-go's, against a server that sends harmful answers for ten minutes of virtual time and
// then correct ones.
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
//  2. Heap: its peak during an attack stays below one bound for all attacks.
//  3. Health: it reports an error, in a text of bounded length.
//  4. Cache: where watches alone are attacked, lists keep it up to date.
//  5. Recovery: after the attack, the cache equals the server's state within minutes.
//
// # How to run it
//
//	go test ./internal/test/hostile
//	go test ./internal/test/hostile -run TestHostileServers -v -hostile.table   # the table of docs/reports/security.md
//
// # Concurrency properties
//
// Attacks run one after the other, as the heap is that of the process.
//
// # Memory
//
// The answers of an attack are made once.
package hostile
