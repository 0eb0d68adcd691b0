package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/cmd/tidings/internal/problem"
	"github.com/tidings-go/tidings/cmd/tidings/internal/view"
	"github.com/tidings-go/tidings/flight"
)

// recordOptions are the flags of `tidings record`.
type recordOptions struct {
	watch  watchOptions
	length time.Duration
	dir    string
	cut    []string
	size   int // MiB
	age    time.Duration
}

const (
	// recordSize is the default of --max-size in MiB, and maxRecordSize the most.
	recordSize, maxRecordSize = 64, 512
	// recordAge stands for no --max-age.
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
	clusters := newClusterFlags()
	cmd := &cobra.Command{
		Use:     "record TYPE[,TYPE…] [NAME…] [flags]",
		Short:   "Record what the server of a cluster sends to a file",
		Long:    recordLong,
		Example: recordExample,
		Args: func(cmd *cobra.Command, args []string) (err error) {
			o.watch.queries, err = parseQueries(cmd.CommandPath(), args)
			return err
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(cmd.CommandPath()); err != nil {
				return err
			}
			if err := clusters.check(cmd.CommandPath()); err != nil {
				return err
			}
			return runRecord(cmd, c, o, clusters)
		},
		ValidArgsFunction: clusters.completeTypes,
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	o.watch.addSelection(flags, clusters, "record")
	flags.BoolVarP(&o.watch.quiet, "quiet", "q", false,
		"print the name of the file only: no notes, status line or summary")
	flags.DurationVar(&o.length, "for", 0, "how long to record, as in 30s or 5m; 0 until Ctrl-C")
	flags.StringVar(&o.dir, "dir", ".", "the directory of the file; it is made if it does not exist")
	flags.StringSliceVar(&o.cut, "cut", nil,
		"leave these fields out of the objects, as in spec.containers.env")
	flags.IntVar(&o.size, "max-size", recordSize, "keep the newest so many MiB, in memory")
	flags.DurationVar(&o.age, "max-age", 0, "keep what is not older, as in 10m; 0 for everything")
	flags.AddFlagSet(clusters.set)
	complete(cmd, "context", clusters.completeContexts)
	cmd.SetUsageFunc(usageWith("Flags for the cluster, as for kubectl", clusters.set))
	return cmd
}

// check returns an error for invalid flags, before the cluster is asked.
func (o *recordOptions) check(command string) error {
	w := &o.watch
	if _, err := labels.Parse(w.labels); err != nil {
		return problem.Usage(command, "--selector %q: %v", w.labels, err)
	}
	if _, err := fields.ParseSelector(w.fields); err != nil {
		return problem.Usage(command, "--field-selector %q: %v", w.fields, err)
	}
	if name := w.queries[0].name; name != "" && (w.labels != "" || w.fields != "") {
		return problem.Usage(command, "the name %q and a selector exclude each other: "+
			"leave one out", name)
	}
	switch {
	case o.length < 0:
		return problem.Usage(command, "--for %v is negative: 0 means until Ctrl-C", o.length)
	case o.size < 1 || o.size > maxRecordSize:
		return problem.Usage(command, "--max-size %d: choose a number of MiB from 1 to %d", o.size,
			maxRecordSize)
	case o.age != 0 && o.age < time.Second:
		return problem.Usage(command, "--max-age %v: choose a second or more, or 0 for everything",
			o.age)
	}
	if _, err := o.recorder(); err != nil {
		return problem.Usage(command, "--cut: %v", errors.Unwrap(err))
	}
	w.timeout = o.length
	return nil
}

// recorder returns a flight recorder.
func (o *recordOptions) recorder() (*flight.Recorder, error) {
	age := o.age
	if age == 0 {
		age = recordAge
	}
	return flight.New(flight.Options{MaxBytes: int64(o.size) << 20, MaxAge: age, Cut: o.cut})
}

// runRecord records until the end, as a watch that prints no changes.
func runRecord(cmd *cobra.Command, c *common, o recordOptions, flags *clusterFlags) error {
	recorder, err := o.recorder()
	if err != nil {
		return err
	}
	asked := make(chan os.Signal, 1)
	if signals := dumpSignals(); len(signals) > 0 {
		signal.Notify(asked, signals...)
		defer signal.Stop(asked)
	}
	warnings := c.screen(cmd)
	screen := warnings
	if o.watch.quiet {
		screen = c.screenWith(cmd, io.Discard)
	}
	options := tidings.FactoryOptions{Logger: c.logger(warnings, view.Secrecy{})}
	options.Transport.Recorder = recorder
	clusters, err := openClusters(cmd, screen, o.watch, flags, options)
	if err != nil || clusters == nil {
		return err
	}
	w := newWatcher(screen, o.watch, view.Secrecy{}, clusters)
	w.warnings, w.recording = warnings, &recording{recorder, o.dir, asked}
	return w.run(cmd.Context())
}

// recording is where a watcher writes what its informers read.
type recording struct {
	recorder *flight.Recorder
	dir      string
	asked    <-chan os.Signal // asks for a file
}

// writeRecording writes a file and prints its name.
func (w *watcher) writeRecording(reason string) error {
	name, err := w.recording.recorder.DumpFile(w.recording.dir, reason)
	if err != nil {
		return fmt.Errorf("the recording cannot be written: %w: choose another --dir", err)
	}
	return w.printer.screen.Print(name + "\n")
}
