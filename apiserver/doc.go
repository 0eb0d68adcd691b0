// Package apiserver starts a real kube-apiserver and its etcd for tests of admission,
// validation, server-side apply and RBAC, which apisim does not have. It needs Go alone and
// downloads nothing but Go modules.
//
//	Start(t) ──▶ Build ──▶ go build, once ──▶ the program ──▶ kube-apiserver ──▶ etcd
//	   │          recipe/: main.go, and a go.mod       ▲  one process, loopback TCP
//	   │          and go.sum for each version          │
//	   └─▶ *Server: Config, Kill, Restart, Backup ─────┘
//	         AddInstance ──▶ another kube-apiserver ──▶ the same etcd
//
// # Costs
//
// The first build compiles the API server from its sources, which takes about six minutes on two
// cores. Give that first test the time with -timeout, or call [Build] before. The compiled packages
// stay in Go's build cache, and the program in the user's cache directory. From then on a server
// starts in two or three seconds, and takes about 300 MB. So does another server before the same
// etcd.
//
// # The server
//
//  1. The server is of [Version], or of an earlier minor version that Options.Version names. Your
//     go.mod does not matter.
//  2. Etcd listens on a Unix socket only, and does not sync its files: its data survives
//     a server that is killed, and not a machine that loses power.
//  3. Authentication is by client certificates, see [Server.ConfigFor]; authorisation is RBAC.
//  4. No controllers run. Objects have no defaults that controllers set, and garbage is not
//     collected. The admission plugin ServiceAccount waits for a controller, so it is disabled,
//     unless Options.Arguments have a --disable-admission-plugins of their own.
//  5. Privileged containers are allowed, as in most clusters. Options.Arguments can set
//     --allow-privileged=false.
//
// # Concurrency properties
//
// The methods of a [Server] may be called from any goroutine. Servers share nothing but the
// program, so each test may have one. A server ends with the test process, also when that is
// killed.
package apiserver
