// Package debug has pages with the state of informers, controllers and groups of shards, and the
// same figures as JSON.
//
//	factories, informers, managers ──▶ Handler ──┬── overview      /
//	                                     ▲       ├── informer      /informer?name=
//	                                     │       ├── controller    /controller?name=
//	                                     │       ├── group         /group?name=
//	                         sampler ────┘       ├── key           /key?key=
//	            (each ten seconds, and           └── changes       /changes?informer=
//	             each second while one looks)
//
// # Rules
//
//  1. Every page has the same figures in JSON at the same address: with the header Accept:
//     application/json, or with &format=json.
//     The history is in JSON with &history=1.
//  2. Pages need no script. A script makes the view of changes live, refreshes figures, and says so
//     when there is no answer. Each page has the time of its figures.
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
// A [Handler] may be used by any number of goroutines. The first Add, or Serve, starts the sampler,
// which is one goroutine. It ends with Close, or with the context of Serve; both wait for it. Each
// open view of changes is a handler of its informer, named "debug", until its request ends. It never
// delays the informer: it keeps at most 1,000 changes that were not sent, and counts the others.
//
// # Memory
//
// The history has 360 points of four bytes: of six figures for an informer, two for each of its
// handlers, and six for a controller. For 50 informers with two handlers each it takes about
// 0.9 MB when it is full, after an hour. While somebody looks, and for five minutes after, the
// sampler keeps 120 samples of the same figures besides. A view of changes holds the states of the
// objects of changes that were not sent.
package debug
