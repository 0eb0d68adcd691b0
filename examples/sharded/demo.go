package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/tidings-go/tidings/internal/test/replicas"
)

// demo is three replicas beside a server.
type demo struct {
	*cluster
	flags
	out   io.Writer
	group replicas.Group
}

// runDemo runs three replicas until ctx ends. It starts none again.
func (f *flags) runDemo(ctx context.Context) error {
	cluster, err := newCluster(ctx)
	if err != nil {
		return err
	}
	defer cluster.Close() //nolint:errcheck // the program ends
	d := &demo{cluster: cluster, flags: *f, out: os.Stdout}
	d.lease = cmp.Or(d.lease, replicas.Duration)
	d.group = replicas.Group{
		Lease: d.namespace + "/" + name, Duration: d.lease, Print: d.print, Rest: d.rest,
	}
	if err = d.start(); err == nil {
		d.greet()
		following, stop := context.WithCancel(ctx)
		changed := make(chan error, 1)
		go func() {
			defer stop() // if it fails
			changed <- cluster.change(following)
		}()
		err = d.group.Follow(following)
		stop()
		err = errors.Join(err, <-changed)
	}
	return errors.Join(err, d.end(context.WithoutCancel(ctx)))
}

func (d *demo) start() error {
	for _, name := range []string{"a", "b", "c"} {
		arguments := []string{
			"-replica", "-until-eof", "-identity", name,
			"-server", d.url, "-namespace", d.namespace, "-lease", d.lease.String(),
		}
		if d.isVerbose {
			arguments = append(arguments, "-v")
		}
		p, err := replicas.Start(os.Stderr, name, arguments...)
		if err != nil {
			return err
		}
		d.group.Replicas = append(d.group.Replicas, p)
	}
	return nil
}

func (d *demo) greet() {
	d.printf("The API server is at %s. It has %d ConfigMaps in %d namespaces.\n",
		d.url, teams*perTeam, teams)
	for _, p := range d.group.Replicas {
		d.printf("Replica %s is process %d, with pages at %s\n", p.Name, p.PID(), p.Pages)
	}
	d.printf("End one and see its slots move: kill -9 %d\n", d.group.Replicas[0].PID())
	d.printf("Ask the Leases: go run ./cmd/tidings shards %s --server %s\n", d.group.Lease, d.url)
	d.printf("Ctrl-C ends all.\n\n")
}

func (d *demo) printf(format string, arguments ...any) { fmt.Fprintf(d.out, format, arguments...) }

// print prints a line with the time.
func (d *demo) print(line string) error {
	_, err := fmt.Fprintf(d.out, "%s  %s\n", time.Now().Format(time.TimeOnly), line)
	return err
}

// rest returns the end of the line about all replicas.
func (d *demo) rest(ctx context.Context) (string, error) {
	d.ForgetRequests()
	waiting, err := d.waiting(ctx)
	return fmt.Sprintf(", %d ConfigMaps wait", waiting), err
}

// end ends the replicas, which release their Leases.
func (d *demo) end(ctx context.Context) error {
	d.printf("\n")
	err := d.group.End(ctx)
	held, heldErr := d.held(ctx, d.namespace)
	if err = errors.Join(err, heldErr); err == nil && len(held) > 0 {
		err = fmt.Errorf("the Leases %s are not released", strings.Join(held, ", "))
	}
	if err == nil {
		err = d.print("all Leases are released")
	}
	return err
}
