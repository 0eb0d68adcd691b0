//go:build ignore

// Command kube is a kube-apiserver and the etcd that it keeps its data in, in one process, or a
// kube-apiserver before an etcd that runs. Package apiserver builds it, with the go.mod of a version,
// and starts it; that package's Options say what can be chosen.
//
//	kube [--data DIR] --etcd-socket FILE [-- flags of kube-apiserver]
//
// When its standard input ends, it ends too, so that it does not outlive who started it.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net/url"
	"os"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
)

// etcdPatience is how long etcd may take to be ready.
const etcdPatience = time.Minute

func main() {
	data := flag.String("data", "", "the directory of etcd's data; without one, etcd runs elsewhere")
	socket := flag.String("etcd-socket", "", "the Unix socket that etcd listens on")
	flag.Parse()
	go func() {
		io.Copy(io.Discard, os.Stdin) //nolint:errcheck // an error is an end as well
		os.Exit(0)
	}()
	if err := run(*data, *socket, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(data, socket string, arguments []string) error {
	if data != "" {
		etcd, err := startEtcd(data, socket)
		if err != nil {
			return err
		}
		defer etcd.Close()
	}
	server := app.NewAPIServerCommand() // it ends with SIGTERM
	server.SetArgs(append([]string{"--etcd-servers=unix://" + socket}, arguments...))
	return server.ExecuteContext(server.Context())
}

// startEtcd starts a cluster of one member, which only this machine's user can reach.
func startEtcd(data, socket string) (*embed.Etcd, error) {
	config := embed.NewConfig()
	config.Dir = data
	config.LogLevel = "error"
	config.UnsafeNoFsync = true // nothing has to outlive the machine
	// Etcd 3.6, which Kubernetes 1.35 and 1.36 have, advertises no sockets. The addresses that it
	// advertises by default stay: nobody asks a cluster of one member for them.
	config.ListenClientUrls = []url.URL{unix(socket)}
	config.ListenPeerUrls = []url.URL{unix(socket + ".peer")}
	etcd, err := embed.StartEtcd(config)
	if err != nil {
		return nil, fmt.Errorf("start etcd: %w", err)
	}
	ctx, stop := context.WithTimeout(context.Background(), etcdPatience)
	defer stop()
	select {
	case <-etcd.Server.ReadyNotify():
		return etcd, nil
	case err := <-etcd.Err():
		return nil, fmt.Errorf("etcd has ended: %w", err)
	case <-ctx.Done():
		etcd.Close()
		return nil, fmt.Errorf("etcd was not ready within %v", etcdPatience)
	}
}

func unix(path string) url.URL { return url.URL{Scheme: "unix", Path: path} }
