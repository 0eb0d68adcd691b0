// Package kubectl runs the kubectl of the Kubernetes release that Tidings builds upon against
// apisim, "tidings serve" and "tidings demo", and compares its output with the sessions in
// testdata. It has tests only, and is a module of its own because of kubectl's requirements.
//
//	testdata/*.session ─▶ session ─▶ kubectl (this test binary, run again)
//	                         │             │ kubeconfig, loopback TCP
//	testdata/*.yaml ─────────┴──▶ apisim ◀─┘
//
// # Sessions
//
//  1. A line "$ kubectl …" is a command. The lines up to the next command are its output, with the
//     error stream after the rest. An exit status other than 0 is a last line "[exit N]".
//  2. A command that ends in "&" runs in the background. The test waits for the lines after it.
//     "$ stop" waits for more lines and then ends the command. "$ end" waits until it ends by
//     itself.
//  3. Lines that begin with "#" are comments.
//  4. "EDIT='OLD => NEW'" before a command gives it an editor that replaces OLD by NEW.
//  5. Ages are written as 0s, times as TIME and the server as SERVER. All other output, UIDs
//     included, repeats from run to run.
//
// fields.session shows a user's work with a cluster, by names and fields, without tables. It runs
// against a process of "tidings serve" too. demo.session shows the same for "tidings demo", whose
// controllers react to the user's writes.
//
// "go test -update" writes the sessions again, except commands that run in the background.
//
// # Unsupported commands
//
// Some commands need parts of a real API server that apisim does not have. The sessions show the
// output of these commands: explain, create token, logs, exec, attach, port-forward and others that
// a kubelet answers. Values that a real server sets by default or allocates, such as the cluster IP
// of a service, are empty. No controller runs but in demo.session: rollouts proceed by patches.
//
// # Concurrency properties
//
// Every session has a server, a directory and processes of its own, so the sessions run in
// parallel.
package kubectl
