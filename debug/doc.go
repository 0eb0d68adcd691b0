// Package debug has pages with the state of informers, controllers and groups of shards, and the
// same figures as JSON.
//
//	factories, informers, managers ──▶ Handler ──┬── overview      /
//	                                     ▲       ├── informer      /informer?name=
//	                                     │       ├── controller    /controller?name=
//	                                     │       ├── group         /group?name=
//	                         sampler ────┘       ├── key           /key?key=
//	                  (one sample a second)      └── changes       /changes?informer=
//
// # Rules
//
//  1. Every page has the same figures in JSON at the same address: with the header Accept:
//     application/json, or with &format=json.
//  2. Pages need no script. A script makes the view of changes live, and refreshes figures.
//  3. Pages load nothing from other hosts: styles and the script are embedded, and the content
//     security policy allows nothing else.
//  4. Objects are shown only with Options.Bodies, and the contents of Secrets never. Without
//     Bodies, changes are the paths of the fields that differ.
//  5. A request has to name the host by its IP address, as localhost, or by a name in
//     Options.Hosts: a page of another site cannot read these pages by DNS rebinding. The pages
//     have no other protection.
//  6. All requests are read-only, GET and HEAD, but for POST /dump, which returns a recording of
//     Options.Recorder. A page of another site cannot send that.
//
// # Concurrency properties
//
// A [Handler] may be used by any number of goroutines. A request starts the sampler, which ends
// when no request has come for five minutes, or with Close. Each open view of changes is a handler
// of its informer, named "debug", until its request ends. It never delays the informer: it keeps
// at most 1,000 changes that were not sent, and counts the others.
//
// # Memory
//
// 120 samples: of four numbers for an informer, two for each of its handlers, and three for a
// controller. A view of changes holds the states of the objects of changes that were not sent.
package debug
