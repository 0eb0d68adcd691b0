// Package kubectl runs the kubectl of the Kubernetes release that Tidings builds upon
// against apisim, "tidings serve" and "tidings demo", and compares what it prints with the sessions in
// testdata. It has tests only, and is a module of its own for what kubectl requires.
//
//	testdata/*.session ─▶ session ─▶ kubectl (this test binary, run again)
//	                         │             │ kubeconfig, loopback TCP
//	testdata/*.yaml ─────────┴──▶ apisim ◀─┘
//
// # Sessions
//
//  1. A line "$ kubectl …" is a command; the lines up to the next one are what it
//     prints, errors after the rest. A status other than 0 is a last line "[exit N]".
//  2. A command that ends in "&" goes on. What follows it is awaited, and "$ stop"
//     awaits more lines and then ends it. "$ end" waits until it ends by itself.
//  3. Lines that begin with "#" are comments.
//  4. "EDIT='OLD => NEW'" before a command gives it an editor that replaces OLD by NEW.
//  5. Ages are written as 0s, times as TIME and the server as SERVER. All else, UIDs
//     included, repeats from run to run.
//
// fields.session has what a user does with a cluster, by names and fields, without tables.
// It runs against a process of "tidings serve" too. demo.session has the same for "tidings demo",
// whose controllers carry out what the user writes.
//
// "go test -update" writes the sessions anew, but for commands that go on.
//
// # What does not work
//
// Some commands need what apisim leaves to a real API server, and the sessions show
// what they print: explain, create token, logs, exec, attach, port-forward and what else a
// kubelet answers. Values that a real server sets by default or allocates, such as the cluster
// IP of a service, are empty. No controller runs but in demo.session: rollouts go on by patches.
//
// # Concurrency properties
//
// Every session has a server, a directory and processes of its own, so that they run
// beside each other.
package kubectl
