package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/cmd/tidings/internal/problem"
	"github.com/tidings-go/tidings/cmd/tidings/internal/view"
)

// standardInput is what --load calls the standard input.
const standardInput = "-"

// service is one run of `tidings serve`. Beside those of the server it has one goroutine,
// for --load -, which ends with the input.
type service struct {
	o       serveOptions
	streams Streams
	screen  *view.Screen
	server  *apisim.Server
	gate    gate
	access  *kubeconfig
}

func runServe(cmd *cobra.Command, c *common, o serveOptions) error {
	s := &service{o: o, streams: c.streams, screen: c.screen(cmd)}
	var err error
	s.server, err = apisim.New(apisim.Options{Seed: o.seed, Middleware: s.gate.wrap, Logger: c.logger(s.screen, view.Secrecy{})})
	if err != nil {
		return err
	}
	ctx := cmd.Context()
	err = s.open(ctx)
	switch {
	case err == nil:
		<-ctx.Done()
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
	if err := claimKubeconfig(s.o.kubeconfig); err != nil {
		return err // before what takes long
	}
	contents, err := s.fill(ctx)
	if err != nil {
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
	return s.say("Ctrl-C ends it, and nothing is kept")
}

// fill brings what --load names, and says how much that is.
func (s *service) fill(ctx context.Context) (contents string, err error) {
	if len(s.o.load) == 0 {
		return "no objects but the namespaces that every cluster has", nil
	}
	before := s.server.Snapshot().Objects()
	if err := s.load(ctx); err != nil {
		return "", s.explainLoad(err)
	}
	return view.Counted(int64(s.server.Snapshot().Objects()-before), "object", "objects") + " loaded", nil
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
	if !errors.As(err, new(apierrors.APIStatus)) {
		remedy = ": name files of objects in YAML or JSON, as `kubectl get -o yaml` prints them, or directories of such"
	}
	line := strings.TrimPrefix(err.Error(), "apisim: ") + remedy
	line = strings.Replace(line, ": create its CustomResourceDefinition, or register it with Server.Register", ": load its CustomResourceDefinition too", 1)
	return problem.Reworded(fmt.Sprintf("--load: %s", line), err)
}

func (s *service) say(format string, args ...any) error {
	return s.screen.Print(s.screen.Palette().Dim("── ") + fmt.Sprintf(format, args...) + "\n")
}
