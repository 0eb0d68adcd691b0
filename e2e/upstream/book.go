package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/tidings-go/tidings/internal/tool/migration"
)

// generator is a program in kubebuilder's module that makes the project of a tutorial. It does what
// the program of that module does which writes the projects of the book, but for the chart.
const generator = `package main

import (
	"os"

	tutorial "sigs.k8s.io/kubebuilder/v4/hack/docs/internal/%s"
)

func main() {
	sample := tutorial.NewSample(os.Args[1], os.Args[2])
	sample.GenerateSampleProject()
	sample.UpdateTutorial()
}
`

// makeProject makes the project of a tutorial of kubebuilder's book with kubebuilder itself, and
// returns its directory. The project is a module of its own, which kubebuilder's module lacks.
func makeProject(ctx context.Context, dir, kubebuilder, tutorial string) (project string, err error) {
	command, project := filepath.Join(dir, "kubebuilder"), filepath.Join(dir, "project")
	place := filepath.Join("hack", "docs", "tidings")
	for _, name := range []string{project, filepath.Join(kubebuilder, place)} {
		if err := os.MkdirAll(name, 0o755); err != nil {
			return "", err
		}
	}
	text := fmt.Appendf(nil, generator, tutorial)
	err = os.WriteFile(filepath.Join(kubebuilder, place, "main.go"), text, 0o644)
	if err != nil {
		return "", err
	}
	for _, arguments := range [][]string{
		{"build", "-o", command, "."}, {"run", "./" + filepath.ToSlash(place), command, project},
	} {
		if _, err := migration.Go(ctx, kubebuilder, arguments...); err != nil {
			return "", err
		}
	}
	// The definitions, which the suites install, and the copies. controller-gen is there by now.
	manifests := exec.CommandContext(ctx, "make", "manifests", "generate")
	manifests.Dir = project
	if out, err := manifests.CombinedOutput(); err != nil {
		return "", fmt.Errorf("make manifests generate: %w\n%s", err, out)
	}
	return project, nil
}

// buildCommand builds the command tidings and returns its file.
func buildCommand(ctx context.Context, dir string) (string, error) {
	root, err := rootOf(ctx)
	if err != nil {
		return "", err
	}
	command := filepath.Join(dir, "tidings")
	_, err = migration.Go(ctx, root, "build", "-o", command, "./cmd/tidings")
	return command, err
}
