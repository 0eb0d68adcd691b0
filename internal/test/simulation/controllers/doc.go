// Package controllers runs hours of virtual time with replicas of a controller on a simulated API
// server, under random writes, faults, take-overs and restarts, and checks their calls and writes.
//
//	schedule ──▶ users' writes, faults, starts and stops of replicas ──▶ apisim ◀── replicas
//	                                                                                 │ calls, writes
//	                                                                     checks ◀────┘
//
// The controller keeps a Secret for each ConfigMap, with the value that the ConfigMap specifies,
// and records that in an annotation. A finalizer removes the Secret. A second controller, of the
// same manager or of another one on the same factory and guard, patches another annotation. The
// checks of each call and write:
//
//   - C1: no other call of the key runs in the replica, and no other replica's term is open;
//   - C3: the caches are not older than the writes of the earlier calls of the run for the key, nor
//     than those of the terms before, if the last one has left its versions;
//   - C6: a call for a new object of a key comes after the call for the end of the earlier one;
//   - C10: a write is sent while its term is open.
//
// At the end the faults are lifted, and the Secrets must become those of the ConfigMaps. What is
// logged, and shown on pages, in metrics and in spans, has neither contents of Secrets nor tokens.
package controllers
