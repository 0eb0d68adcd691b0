package cli

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math"
	"net/url"
	"sync"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/cmd/tidings/internal/problem"
	"github.com/tidings-go/tidings/cmd/tidings/internal/top"
	"github.com/tidings-go/tidings/cmd/tidings/internal/view"
	"github.com/tidings-go/tidings/debug"
	"github.com/tidings-go/tidings/flight"
	"github.com/tidings-go/tidings/health"
	"github.com/tidings-go/tidings/source"
)

// replayOptions are the flags of `tidings replay`.
type replayOptions struct {
	speed float64
	page  string
	top   bool
}

func newReplay(c *common) *cobra.Command {
	var o replayOptions
	cmd := &cobra.Command{
		Use:   "replay FILE [flags]",
		Short: "Play a flight recording of a program's informers",
		Long: `Replay plays a flight recording: informers read what those of the recorded program read, with
the same errors and silences, and print each change that their handlers receive, and their state at
the end. With --top, replay shows these informers as "tidings top" does, until q, and prints their
state then. A program writes recordings with package flight of Tidings.

Waits after failures are those of the informers, whatever --speed says. Objects that the recording
has by their identity alone have no other fields.`,
		Example: `  # as fast as it was recorded
  tidings replay tidings-20261123T101500Z-42.zip

  # without its silences, with the pages of its informers until Ctrl-C
  tidings replay recording.zip --speed 0 --page localhost:8085

  # in the screens of "tidings top"
  tidings replay recording.zip --top`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return problem.Usage(cmd.CommandPath(), "name one file, as in "+
					"`tidings replay recording.zip`")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.speed < 0 || math.IsNaN(o.speed) {
				return problem.Usage(cmd.CommandPath(), "--speed %v: give how many times faster, "+
					"as in 10, or 0 for no waits", o.speed)
			}
			screen := c.screen(cmd)
			if o.top && !screen.Live() {
				return problem.Usage(cmd.CommandPath(), "--top: the output is no terminal: leave it out, or "+
					"read the pages of --page with `tidings top --once`")
			}
			return runReplay(cmd, c, screen, args[0], o)
		},
	}
	flags := cmd.Flags()
	flags.Float64Var(&o.speed, "speed", 1, "play so many times faster than recorded; 0 does not wait")
	flags.StringVar(&o.page, "page", "",
		"serve the pages of its informers at this address, as in localhost:8085, until Ctrl-C")
	flags.BoolVar(&o.top, "top", false, "show its informers in the screens of the command top, until q")
	return cmd
}

// runReplay plays a file.
func runReplay(
	cmd *cobra.Command, c *common, screen *view.Screen, file string, o replayOptions,
) error {
	recording, err := flight.Open(file)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(cmd.Context())
	r := &replay{
		screen: screen, logger: c.logger(screen, view.Secrecy{}), speed: o.speed, began: time.Now(),
		quiet: o.top,
	}
	if o.top {
		r.logger, o.page = slog.New(slog.DiscardHandler), cmp.Or(o.page, anyPort)
	}
	if r.speed == 0 {
		r.speed = math.Inf(1)
	}
	defer r.running.Wait()
	defer stop()
	if err := say(screen, "tracks: %d, recorded from %s to %s because of: %s", len(recording.Tracks),
		recording.Began.Format(time.DateTime), recording.Made.Format(time.TimeOnly),
		recording.Reason); err != nil {
		return err
	}
	if err := r.start(ctx, recording); err != nil {
		return err
	}
	if o.page != "" && len(r.players) > 0 {
		address, stopPages, err := servePages(o.page, debug.Options{Informers: r.informers()})
		if err != nil {
			return err
		}
		defer stopPages()
		if err := say(screen, "its informers on a page: %s", address); err != nil {
			return err
		}
		if o.top {
			return r.showTop(ctx, cmd, address)
		}
	}
	if err := r.finish(ctx); err != nil || o.page == "" {
		return err
	}
	<-ctx.Done()
	return nil
}

// replay plays the tracks of a recording.
type replay struct {
	screen  *view.Screen
	logger  *slog.Logger
	speed   float64
	began   time.Time
	players []player
	running sync.WaitGroup // the informers
	quiet   bool           // changes are not printed
}

// player is the informer of a track.
type player struct {
	debug.Informer
	title     string
	done      <-chan struct{}
	unplanned func() int
}

// informers returns the informers of the tracks, for the pages.
func (r *replay) informers() []debug.Informer {
	var all []debug.Informer
	for _, p := range r.players {
		all = append(all, p.Informer)
	}
	return all
}

// start runs an informer for each track. Objects of types that are not built in are maps.
func (r *replay) start(ctx context.Context, recording *flight.Recording) error {
	for _, track := range recording.Tracks {
		gvk := schema.GroupVersionKind{Group: track.Group, Version: track.Version, Kind: track.Kind}
		var err error
		if track.Metadata {
			err = play(ctx, r, track, func() *metav1.PartialObjectMetadata {
				return new(metav1.PartialObjectMetadata)
			})
		} else if _, known := newObject(gvk); known {
			err = play(ctx, r, track, func() tidings.Object {
				object, _ := newObject(gvk)
				return object
			})
		} else {
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

// newObject returns an object of a built-in type.
func newObject(gvk schema.GroupVersionKind) (tidings.Object, bool) {
	made, err := scheme.Scheme.New(gvk)
	if err != nil {
		return nil, false
	}
	object, ok := made.(tidings.Object)
	return object, ok
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
	informer, err := tidings.NewInformer(played, tidings.InformerOptions[T]{Name: title, Logger: r.logger})
	if err != nil {
		return err
	}
	changed := func(what string, object T) {
		if r.quiet {
			return
		}
		key := source.Key(object.GetNamespace(), object.GetName())
		r.screen.Print(fmt.Sprintf("%s%s %s %s at %s\n", //nolint:errcheck // say fails later
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
	r.players = append(r.players, player{informer, title, played.Done(), played.Unplanned})
	r.running.Go(func() { informer.Run(ctx) }) //nolint:errcheck // it ends with the command
	return nil
}

// time returns how far the recording was played.
func (r *replay) time() string {
	if math.IsInf(r.speed, 1) {
		return ""
	}
	played := time.Duration(float64(time.Since(r.began)) * r.speed)
	return fmt.Sprintf("%8s ", played.Round(100*time.Millisecond))
}

// finish waits until all was played and handled, and prints how the informers are then.
func (r *replay) finish(ctx context.Context) error {
	for _, p := range r.players {
		select {
		case <-p.done:
		case <-ctx.Done():
			return problem.Reworded(p.title+": the replay was ended before the end of the recording",
				ctx.Err())
		}
		h := p.Health()
		for tick := time.NewTicker(10 * time.Millisecond); !isHandled(h); h = p.Health() {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		if err := r.sayState(p); err != nil {
			return err
		}
	}
	return nil
}

// showTop shows the pages at an address until the user ends it, and prints how the informers are
// then.
func (r *replay) showTop(ctx context.Context, cmd *cobra.Command, pages string) error {
	address, err := url.Parse(pages)
	if err != nil {
		return err
	}
	o := topOptions{address: address, interval: defaultInterval}
	client, err := o.client(ctx, nil)
	if err != nil {
		return err
	}
	if err := top.Run(ctx, client, o.screens(cmd, r.screen)); err != nil || ctx.Err() != nil {
		return err
	}
	for _, p := range r.players {
		if err := r.sayState(p); err != nil {
			return err
		}
	}
	return nil
}

// sayState prints how an informer is.
func (r *replay) sayState(p player) error {
	h := p.Health()
	line := fmt.Sprintf("%s is %s with %d objects, after %d lists and %d watches",
		p.title, h.State, h.Objects, h.Lists, h.Watches)
	if n := p.unplanned(); n > 0 {
		line += fmt.Sprintf("; requests that are not in the recording: %d", n)
	}
	if h.LastError != nil {
		line += fmt.Sprintf("; its last error: %v", h.LastError)
	}
	return say(r.screen, "%s", line)
}

// isHandled reports whether the handler has received everything that was read.
func isHandled(h health.Informer) bool {
	for _, handler := range h.Handlers {
		if handler.State != health.HandlerIdle {
			return false
		}
	}
	return h.Queued == 0 && h.Version == h.Watch.Version
}
