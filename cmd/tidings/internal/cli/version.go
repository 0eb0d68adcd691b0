package cli

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tidings-go/tidings/cmd/tidings/internal/problem"
)

// version is what the binary says of itself.
type version struct {
	// Version is that of the module, "(devel)" for a build of a working copy.
	Version string `json:"version"`
	// Revision and Time are those of the commit, "" where they are not known.
	Revision string `json:"revision,omitempty"`
	Time     string `json:"time,omitempty"`
	// Modified says that the working copy had changes that were not committed.
	Modified bool `json:"modified,omitempty"`
	// Kubernetes is the version of client-go.
	Kubernetes string `json:"kubernetes,omitempty"`
	// Go and Platform are what it was built with and for.
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// versionOf reads what the linker has noted; nil is a binary without that.
func versionOf(info *debug.BuildInfo) version {
	v := version{Version: "(devel)", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if info == nil {
		return v
	}
	if info.Main.Version != "" {
		v.Version = info.Main.Version
	}
	for _, setting := range info.Settings {
		switch setting.Key {
		case "vcs.revision":
			v.Revision = setting.Value
		case "vcs.time":
			v.Time = setting.Value
		case "vcs.modified":
			v.Modified = setting.Value == "true"
		}
	}
	for _, module := range info.Deps {
		if module.Path == "k8s.io/client-go" {
			v.Kubernetes = module.Version
		}
	}
	return v
}

// String returns the version in a line.
func (v version) String() string {
	parts := []string{v.Go, v.Platform}
	if v.Kubernetes != "" {
		parts = append([]string{"client-go " + v.Kubernetes}, parts...)
	}
	if v.Revision != "" {
		revision := "commit " + v.Revision[:min(len(v.Revision), 12)]
		if v.Modified {
			revision += " with changes"
		}
		parts = append([]string{revision}, parts...)
	}
	return fmt.Sprintf("tidings %s (%s)", v.Version, strings.Join(parts, ", "))
}

func newVersion() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "version [flags]",
		Short: "Say which version of tidings this is",
		Long:  "Version prints the version of this program, and what it was built from. It asks no cluster.",
		Example: `  tidings version

  # for scripts
  tidings version -o json`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			info, _ := debug.ReadBuildInfo()
			v := versionOf(info)
			var err error
			switch output {
			case "":
				_, err = fmt.Fprintln(cmd.OutOrStdout(), v)
			case "json":
				encoder := json.NewEncoder(cmd.OutOrStdout())
				encoder.SetIndent("", "  ")
				err = encoder.Encode(v)
			default:
				err = problem.Usage(cmd.CommandPath(), "--output %q: choose json, or leave it out", output)
			}
			return err
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "json for programs")
	complete(cmd, "output", "json")
	return cmd
}
