package cli

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/cmd/tidings/internal/problem"
	"github.com/tidings-go/tidings/cmd/tidings/internal/view"
	"github.com/tidings-go/tidings/debug"
	"github.com/tidings-go/tidings/flight"
	"github.com/tidings-go/tidings/health"
	"github.com/tidings-go/tidings/source"
)

type replayOptions struct {
	speed float64
	page  string
}

func newReplay(c *common) *cobra.Command {
	var o replayOptions
	cmd := &cobra.Command{
		Use:   "replay FILE [flags]",
		Short: "Play a flight recording of a program's informers",
		Long: `Replay plays a flight recording: informers read what those of the recorded program read, with
the same errors and silences, and print each change that their handlers receive, and their state at
the end. A program writes recordings with package flight of Tidings.

Waits after failures are those of the informers, whatever --speed says, and a watch that lasted for a
second, or an outage of ten, does so at any speed. Objects that the recording
has by their identity alone have no other fields.`,
		Example: `  # as fast as it was recorded
  tidings replay tidings-20261123T101500Z-42.zip

  # without its silences, with the pages of its informers until Ctrl-C
  tidings replay recording.zip --speed 0 --page localhost:8085`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return problem.Usage("name one file, as in `tidings replay recording.zip`")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.speed < 0 || math.IsNaN(o.speed) {
				return problem.Usage("--speed %v: give how many times faster, as in 10, or 0 for no waits",
					o.speed)
			}
			return runReplay(cmd.Context(), c, args[0], o)
		},
	}
	flags := cmd.Flags()
	flags.Float64Var(&o.speed, "speed", 1, "play so many times faster than recorded; 0 waits only where it has to")
	flags.StringVar(&o.page, "page", "",
		"serve the pages of its informers at this address, as in localhost:8085, until Ctrl-C")
	return cmd
}

func runReplay(ctx context.Context, c *common, file string, o replayOptions) error {
	r := &replay{
		screen: c.screen(), speed: cmp.Or(o.speed, math.Inf(1)), began: time.Now(),
	}
	r.logger = c.logger(r.screen, view.Secrecy{})
	if o.page != "" {
		if err := checkAddress(o.page, cannotServePages); err != nil {
			return err
		}
	}
	recording, err := flight.Open(file)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer r.running.Wait()
	defer stop()
	if err := say(r.screen, "tracks: %d, recorded from %s to %s because of: %s", len(recording.Tracks),
		recording.Began.Format(time.DateTime), recording.Made.Format(time.TimeOnly),
		recording.Reason); err != nil {
		return err
	}
	if err := r.start(ctx, recording); err != nil {
		return err
	}
	if o.page == "" || len(r.informers) == 0 {
		return r.finish(ctx)
	}
	address, stopPages, err := servePages(o.page, debug.Options{}, r.pages...)
	if err != nil {
		return err
	}
	defer stopPages()
	if err := say(r.screen, "its informers on a page: %s", address); err != nil {
		return err
	}
	if err := r.finish(ctx); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// replay plays the tracks of a recording.
type replay struct {
	screen    *view.Screen
	logger    *slog.Logger
	speed     float64
	began     time.Time
	informers []replayed
	pages     []any          // the informers, as pages take them
	tracks    []played       // sources of the informers
	running   sync.WaitGroup // informers
}

// replayed is an informer of any type.
type replayed interface{ Health() health.Informer }

// played is the source of an informer.
type played interface {
	Done() <-chan struct{}
	Unplanned() int
}

// start runs an informer for each track. Objects of types that are not built in are maps.
func (r *replay) start(ctx context.Context, recording *flight.Recording) error {
	for _, track := range recording.Tracks {
		gvk := schema.GroupVersionKind{Group: track.Group, Version: track.Version, Kind: track.Kind}
		made, err := scheme.Scheme.New(gvk)
		_, isBuiltIn := made.(tidings.Object)
		switch {
		case track.Metadata:
			err = play(ctx, r, track, func() *metav1.PartialObjectMetadata {
				return new(metav1.PartialObjectMetadata)
			})
		case err == nil && isBuiltIn:
			err = play(ctx, r, track, func() tidings.Object {
				return made.DeepCopyObject().(tidings.Object)
			})
		default:
			err = play(ctx, r, track, func() *unstructured.Unstructured {
				return new(unstructured.Unstructured)
			})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// play runs an informer for a track.
func play[T tidings.Object](
	ctx context.Context, r *replay, track *flight.Track, empty func() T,
) error {
	played, err := source.Replay(track, empty, source.ReplayOptions{Speed: r.speed})
	if err != nil {
		return err
	}
	title := track.String()
	o := tidings.InformerOptions[T]{Name: title, Logger: r.logger}
	informer, err := tidings.NewInformer(played, o)
	if err != nil {
		return err
	}
	changed := func(what string, object T) {
		key := source.Key(object.GetNamespace(), object.GetName())
		r.screen.Print(fmt.Sprintf("%s%s %s %s at %s\n", //nolint:errcheck // a later say fails
			r.time(), title, what, key, object.GetResourceVersion()))
	}
	_, err = informer.AddHandler(tidings.Funcs[T]{
		OnAdd:    func(object T, _ bool) { changed("added", object) },
		OnUpdate: func(_, object T) { changed("updated", object) },
		OnDelete: func(object T) { changed("deleted", object) },
	}, tidings.HandlerOptions{Name: "replay", Policy: tidings.PolicyUnbounded})
	if err != nil {
		return err
	}
	r.informers, r.pages = append(r.informers, informer), append(r.pages, informer)
	r.tracks = append(r.tracks, played)
	r.running.Go(func() { informer.Run(ctx) }) //nolint:errcheck // the informer ends with the command
	return nil
}

// time returns the time that the replay has reached in the recording.
func (r *replay) time() string {
	if math.IsInf(r.speed, 1) {
		return ""
	}
	played := min(float64(time.Since(r.began))*r.speed, math.MaxInt64/2)
	return fmt.Sprintf("%8s ", time.Duration(played).Round(100*time.Millisecond))
}

// finish waits until the recording was played and handled, and prints the states of the informers.
func (r *replay) finish(ctx context.Context) error {
	for i, informer := range r.informers {
		select {
		case <-r.tracks[i].Done():
		case <-ctx.Done():
			return problem.Reworded(informer.Health().Name+
				": the replay was ended before the end of the recording", ctx.Err())
		}
		for !isHandled(informer.Health()) {
			if !sleep(ctx, 10*time.Millisecond) {
				return ctx.Err()
			}
		}
	}
	return r.sayStates()
}

func (r *replay) sayStates() error {
	for i, informer := range r.informers {
		h := informer.Health()
		state := h.State
		if n := len(h.Watch.History); n > 0 {
			state = h.Watch.History[n-1].State // without the attempts after a failure
		}
		line := fmt.Sprintf("%s is %s with %d objects, after %d lists and %d watches",
			h.Name, state, h.Objects, h.Lists, h.Watches)
		if n := r.tracks[i].Unplanned(); n > 0 {
			line += fmt.Sprintf("; requests that are not in the recording: %d", n)
		}
		if h.LastError != nil {
			line += fmt.Sprintf("; its last error: %v", h.LastError)
		}
		if err := say(r.screen, "%s", line); err != nil {
			return err
		}
	}
	return nil
}

// isHandled reports whether the handlers have received everything that was read.
func isHandled(h health.Informer) bool {
	return h.Queued == 0 && h.Version == h.Watch.Version &&
		!slices.ContainsFunc(h.Handlers, func(handler health.Handler) bool {
			return handler.State != health.HandlerIdle
		})
}
