package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/tidings-go/tidings/cmd/tidings/internal/problem"
	"github.com/tidings-go/tidings/cmd/tidings/internal/view"
	"github.com/tidings-go/tidings/internal/see/format"
)

// load loads files, directories and the standard input, and describes the content of the server. It
// prints a note about each kustomization, and one if there was no object.
func (s *server) load(ctx context.Context, names []string, in io.Reader,
	screen *view.Screen) (string, error) {
	if len(names) == 0 {
		return "no objects but the namespaces of every cluster", nil
	}
	before := s.Snapshot().Objects()
	named := slices.DeleteFunc(slices.Clone(names),
		func(name string) bool { return name == standardInput })
	files, err := withoutKustomizations(named, screen)
	if err == nil {
		err = s.Load(files...)
	}
	if err == nil && len(named) < len(names) {
		input := make(chan error, 1)
		go func() { input <- s.LoadFrom("the standard input", in) }()
		select {
		case err = <-input:
		case <-ctx.Done(): // a read of a terminal may never return
			return "", ctx.Err()
		}
	}
	if err != nil {
		return "", explainLoad(err)
	}
	loaded := s.Snapshot().Objects() - before
	if loaded == 0 {
		screen.Note(view.Printable("tidings: --load " + strings.Join(names, ", ") +
			": no object was added"))
	}
	return format.Counted(loaded, "object", "objects") + " loaded", nil
}

// withoutKustomizations replaces directories with kustomizations by their other files, and prints a
// note about each kustomization.
func withoutKustomizations(names []string, screen *view.Screen) (files []string, err error) {
	for _, name := range names {
		var others []string
		skipped := false
		err := filepath.WalkDir(name, func(path string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil && path == name && errors.Is(err, fs.ErrNotExist):
				return nil // Load handles patterns and reports errors
			case err != nil || entry.IsDir():
				return err
			case slices.Contains(kustomizations, filepath.Base(path)):
				skipped = true
				screen.Note(view.Printable(fmt.Sprintf("tidings: --load skips %s: `kubectl kustomize "+
					"%s | tidings serve --load -` loads what it builds", path,
					shellQuoted(filepath.Dir(path)))))
			case slices.Contains(manifests, filepath.Ext(path)):
				others = append(others, path)
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("cannot read %s: %w", name, err)
		}
		if !skipped {
			others = []string{name}
		}
		files = append(files, others...)
	}
	return files, nil
}

// kustomizations are the file names of kustomize, manifests the extensions of the files that are
// loaded.
var (
	kustomizations = []string{"kustomization.yaml", "kustomization.yml", "Kustomization"}
	manifests      = []string{".yaml", ".yml", ".json"}
)

func explainLoad(err error) error {
	text, unknown := strings.CutSuffix(err.Error(),
		": create its CustomResourceDefinition, or register it with Server.Register")
	hint := ""
	switch {
	case unknown && strings.Contains(text, " of kustomize.config.k8s.io/"):
		hint = ": `kubectl kustomize DIRECTORY | tidings serve --load -` loads what it builds"
	case unknown:
		hint = ": load its CustomResourceDefinition, too"
	case !errors.As(err, new(apierrors.APIStatus)):
		hint = ": name files of objects in YAML or JSON, as `kubectl get -o yaml` prints them, or " +
			"directories of such files"
	}
	return rewordServer("--load: ", hint, problem.Reworded(text, err))
}
