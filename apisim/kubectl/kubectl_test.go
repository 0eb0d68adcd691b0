package kubectl

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"k8s.io/component-base/cli"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
)

// asKubectl is the variable that makes this test binary be kubectl: kubectl ends its
// process when it fails and keeps flags in globals, so each command gets a process.
const asKubectl = "TIDINGS_TEST_AS_KUBECTL"

const (
	// asEditor is the argument that makes this test binary be the editor of "kubectl edit".
	asEditor = "as-editor"
	// edition is the variable with a text of the file and, after " => ", the text that the
	// editor writes in its place.
	edition = "EDIT"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == asEditor {
		util.CheckErr(replace(os.Args[2], os.Getenv(edition)))
		return
	}
	if os.Getenv(asKubectl) == "" {
		os.Exit(m.Run())
	}
	if err := cli.RunNoErrOutput(cmd.NewDefaultKubectlCommand()); err != nil {
		util.CheckErr(err)
	}
}

// replace makes the change of an edition in a file.
func replace(file, edition string) error {
	old, replacement, ok := strings.Cut(edition, " => ")
	if !ok {
		return fmt.Errorf("the edition %q has no arrow", edition)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	return os.WriteFile(file, []byte(strings.ReplaceAll(string(text), old, replacement)), 0o600)
}
