package kubectl

import (
	"os"
	"testing"

	"k8s.io/component-base/cli"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
)

// asKubectl is the variable that makes this test binary be kubectl: kubectl ends its
// process when it fails and keeps flags in globals, so each command gets a process.
const asKubectl = "TIDINGS_TEST_AS_KUBECTL"

func TestMain(m *testing.M) {
	if os.Getenv(asKubectl) == "" {
		os.Exit(m.Run())
	}
	if err := cli.RunNoErrOutput(cmd.NewDefaultKubectlCommand()); err != nil {
		util.CheckErr(err)
	}
}
