package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/cmd/tidings/internal/problem"
	"github.com/tidings-go/tidings/cmd/tidings/internal/view"
)

const (
	// standardInput is what --load calls the standard input.
	standardInput = "-"
	// saveEvery is how often a service saves its state, if there is something new. The
	// help of --save says it.
	saveEvery = 10 * time.Second
)

// service is one run of `tidings serve`. Beside those of the server it has one goroutine,
// for --load -, which ends with the input.
type service struct {
	o       serveOptions
	streams Streams
	screen  *view.Screen
	server  *apisim.Server
	gate    gate
	state   archive
	access  *kubeconfig
}

func runServe(cmd *cobra.Command, c *common, o serveOptions) error {
	s := &service{o: o, streams: c.streams, screen: c.screen(cmd), state: archive{path: o.save}}
	var err error
	s.server, err = apisim.New(apisim.Options{Seed: o.seed, Middleware: s.gate.wrap, Logger: c.logger(s.screen, view.Secrecy{})})
	if err != nil {
		return err
	}
	ctx := cmd.Context()
	err = s.open(ctx)
	switch {
	case err == nil:
		err = s.run(ctx)
	case ctx.Err() != nil:
		err = nil // Ctrl-C while it waited for input
	}
	if s.access != nil {
		err = errors.Join(err, s.access.remove())
	}
	return errors.Join(err, s.server.Close())
}

// open fills the server, and makes it known.
func (s *service) open(ctx context.Context) error {
	if s.o.save != "" {
		if err := s.state.claim(s.o.restore); err != nil {
			return err
		}
	}
	if err := claimKubeconfig(s.o.kubeconfig); err != nil {
		return err // before what takes long, and before a state is saved
	}
	contents, err := s.fill(ctx)
	if err != nil {
		return err
	}
	if _, err := s.save(); err != nil {
		return err
	}
	at, err := listen(s.server, s.o.listen)
	if err != nil {
		return err
	}
	if s.access, err = writeKubeconfig(s.o.kubeconfig, at.here, metav1.NamespaceDefault); err != nil {
		return err
	}
	if warning := at.warning(); warning != "" {
		s.screen.Note(warning)
	}
	if err := s.say("an API server at %s, with %s", at, contents); err != nil {
		return err
	}
	if err := s.say("for kubectl in another terminal: export KUBECONFIG=%s", s.access.quoted()); err != nil {
		return err
	}
	if s.o.save == "" {
		return s.say("Ctrl-C ends it, and nothing is kept")
	}
	return s.say("Ctrl-C ends it; the state is kept in %s", s.o.save)
}

// fill brings what --restore and --load name, and says how much that is.
func (s *service) fill(ctx context.Context) (contents string, err error) {
	if s.o.restore != "" {
		if err := restore(s.server, s.o.restore); err != nil {
			return "", err
		}
	}
	before := s.server.Snapshot().Objects()
	contents = "no objects but the namespaces that every cluster has"
	if s.o.restore != "" {
		contents = fmt.Sprintf("%s of %s", view.Counted(int64(before), "object", "objects"), s.o.restore)
	}
	if len(s.o.load) == 0 {
		return contents, nil
	}
	if err := s.load(ctx); err != nil {
		return "", s.explainLoad(err)
	}
	loaded := view.Counted(int64(s.server.Snapshot().Objects()-before), "object", "objects") + " loaded"
	if s.o.restore != "" {
		return contents + ", and " + loaded, nil
	}
	return loaded, nil
}

// load adds what --load names.
func (s *service) load(ctx context.Context) error {
	files := slices.DeleteFunc(slices.Clone(s.o.load), func(name string) bool { return name == standardInput })
	if err := s.server.Load(files...); err != nil {
		return err
	}
	if len(files) == len(s.o.load) {
		return nil
	}
	input := make(chan error, 1)
	go func() { input <- s.server.LoadFrom("the standard input", s.streams.In) }()
	select {
	case err := <-input:
		return err
	case <-ctx.Done(): // a terminal has no end of its own
		return context.Cause(ctx)
	}
}

// explainLoad says which flag an error is about, and what to do.
func (s *service) explainLoad(err error) error {
	remedy := ""
	switch {
	case apierrors.IsAlreadyExists(err) && s.o.restore != "":
		remedy = ": leave out what was restored, or --restore"
	case !errors.As(err, new(apierrors.APIStatus)):
		remedy = ": name files of objects in YAML or JSON, as `kubectl get -o yaml` prints them, or directories of such"
	}
	line := strings.TrimPrefix(err.Error(), "apisim: ") + remedy
	line = strings.Replace(line, ": create its CustomResourceDefinition, or register it with Server.Register", ": load its CustomResourceDefinition too", 1)
	return problem.Reworded(fmt.Sprintf("--load: %s", line), err)
}

func (s *service) say(format string, args ...any) error {
	return s.screen.Print(s.screen.Palette().Dim("── ") + fmt.Sprintf(format, args...) + "\n")
}

// run serves until ctx ends.
func (s *service) run(ctx context.Context) error {
	ticker := time.NewTicker(saveEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return s.end()
		case <-ticker.C:
			if _, err := s.save(); err != nil {
				s.screen.Note(fmt.Sprintf("tidings: %s; the next attempt is in %s", problem.OneLine(err.Error()), view.Short(saveEvery)))
			}
		}
	}
}

// end ends all writing and saves what there is.
func (s *service) end() error {
	s.gate.close()
	saved, err := s.save()
	if err != nil || saved == nil {
		return err
	}
	return s.say("%s saved in %s", view.Counted(int64(saved.Objects()), "object", "objects"), s.o.save)
}

// save saves the state where --save says so, unless that is done, and returns it.
func (s *service) save() (*apisim.Snapshot, error) {
	if s.o.save == "" {
		return nil, nil
	}
	state := s.server.Snapshot()
	return state, s.state.keep(state)
}
