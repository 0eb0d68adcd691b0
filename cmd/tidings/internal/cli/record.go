package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"time"

	"github.com/spf13/cobra"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/cmd/tidings/internal/problem"
	"github.com/tidings-go/tidings/cmd/tidings/internal/view"
	"github.com/tidings-go/tidings/flight"
)

type recordOptions struct {
	choice
	length time.Duration
	dir    string
	cut    []string
	size   int // MiB
	age    time.Duration
}

const (
	// recordSize is the default of --max-size in MiB, and maxRecordSize its limit.
	recordSize, maxRecordSize = 64, 512
	// recordAge stands for a recording without --max-age.
	recordAge = 365 * 24 * time.Hour
)

const recordExample = `  # the pods and deployments of the context's namespace, until Ctrl-C
  tidings record pods,deployments

  # in a script: what the server says of all nodes in five minutes
  file=$(tidings record nodes --for 5m -q)

  # without fields that nobody else should read
  tidings record pods -A --cut spec.containers.env,metadata.annotations --dir recordings`

const recordLong = `Record lists and watches the objects of one or several types, as "tidings watch" does, and writes
what the server sent to a file when it ends: at Ctrl-C, or after --for. It prints the name of the
file. "tidings replay" plays it. Types and names are chosen as for "tidings watch".

The file has the requests, answers, frames, errors and silences with their times, and whole
objects. Objects of a list are recorded by their identity alone, and so are Secrets. The newest are
kept: --max-size and --max-age bound them. On Unix, the signal SIGUSR1 writes a further file.`

func newRecord(c *common) *cobra.Command {
	var o recordOptions
	cmd := &cobra.Command{
		Use:     "record TYPE[,TYPE…] [NAME…] [flags]",
		Short:   "Record what the server of a cluster sends to a file",
		Long:    recordLong,
		Example: recordExample,
	}
	clusters := o.addTo(cmd, "print the name of the file only: no notes, status line or summary")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		recorder, err := o.check()
		if err == nil {
			err = clusters.check()
		}
		if err != nil {
			return err
		}
		return runRecord(cmd.Context(), c, o, clusters, recorder)
	}
	flags := cmd.Flags()
	flags.DurationVar(&o.length, "for", 0, "how long to record, as in 30s or 5m; 0 until Ctrl-C")
	flags.StringVar(&o.dir, "dir", ".", "the directory of the file; it is made if it does not exist")
	flags.StringSliceVar(&o.cut, "cut", nil,
		"leave these fields out of the objects, as in spec.containers.env")
	flags.IntVar(&o.size, "max-size", recordSize, "keep the newest so many MiB, in memory")
	flags.DurationVar(&o.age, "max-age", 0, "keep what is not older, as in 10m; 0 for everything")
	return cmd
}

// check returns the recorder, or an error for invalid flags, before a request to the cluster.
func (o *recordOptions) check() (*flight.Recorder, error) {
	if err := o.choice.check(); err != nil {
		return nil, err
	}
	switch {
	case o.length < 0:
		return nil, problem.Usage("--for %v is negative: 0 means until Ctrl-C", o.length)
	case o.size < 1 || o.size > maxRecordSize:
		return nil, problem.Usage("--max-size %d: choose a number of MiB from 1 to %d", o.size,
			maxRecordSize)
	case o.age != 0 && o.age < time.Second:
		return nil, problem.Usage("--max-age %v: choose a second or more, or 0 for everything", o.age)
	}
	recorder, err := flight.New(flight.Options{
		MaxBytes: int64(o.size) << 20, MaxAge: cmp.Or(o.age, recordAge), Cut: o.cut,
	})
	if err != nil {
		return nil, problem.Usage("--cut: %v", errors.Unwrap(err))
	}
	name, err := recorder.DumpFile(o.dir, "a check of the directory")
	if err == nil {
		err = os.Remove(name)
	}
	if err != nil {
		return nil, unwritten(err)
	}
	return recorder, nil
}

func unwritten(err error) error {
	return fmt.Errorf("the recording cannot be written: %w: choose another --dir", err)
}

// runRecord records like a watch that prints no changes.
func runRecord(
	ctx context.Context, c *common, o recordOptions, flags *clusterFlags, recorder *flight.Recorder,
) error {
	asked := make(chan os.Signal, 1)
	if signals := dumpSignals(); len(signals) > 0 {
		signal.Notify(asked, signals...)
		defer signal.Stop(asked)
	}
	w := c.newWatcher(watchOptions{choice: o.choice, timeout: o.length}, view.Secrecy{})
	w.recorder, w.dir, w.asked = recorder, o.dir, asked
	options := tidings.FactoryOptions{Logger: c.logger(w.warnings, view.Secrecy{})}
	options.Transport.Recorder = recorder
	if err := w.open(ctx, flags, options); err != nil {
		return err
	}
	return w.run(ctx)
}

// writeRecording writes a file and prints its name.
func (w *watcher) writeRecording(reason string) error {
	name, err := w.recorder.DumpFile(w.dir, reason)
	if err != nil {
		return unwritten(err)
	}
	return w.printer.screen.Print(name + "\n")
}
