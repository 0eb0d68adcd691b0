// Package controllers runs hours of virtual time with replicas of a controller on a simulated API
// server, under random writes, faults, take-overs and restarts, and checks what they do.
//
//	schedule ──▶ users' writes, faults, starts and stops of replicas ──▶ apisim ◀── replicas
//	                                                                                 │ calls, writes
//	                                                                     checks ◀────┘
//
// The controller keeps a Secret for each ConfigMap, with what the ConfigMap wants, and says so in
// an annotation. A finalizer removes the Secret. Checked is, at each call and each write:
//
//   - C1: no other call of the key runs in the replica, and no other replica's term is open;
//   - C3: the caches are not older than what the earlier calls of the run wrote for the key;
//   - C6: a call for a new object of a key comes after the call for the end of the earlier one;
//   - C10: a write is sent while its term is open.
//
// At the end the faults are lifted, and the world becomes what the ConfigMaps want.
package controllers
