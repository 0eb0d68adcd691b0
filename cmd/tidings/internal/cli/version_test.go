package cli

import (
	"runtime/debug"
	"strings"
	"testing"
)

func TestVersionOf(t *testing.T) {
	built := &debug.BuildInfo{
		Main:     debug.Module{Version: "v0.4.0"},
		Deps:     []*debug.Module{{Path: "k8s.io/api", Version: "v9"}, {Path: "k8s.io/client-go", Version: "v0.37.1"}},
		Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "0123456789abcdef"}, {Key: "vcs.time", Value: "2026-03-04T05:06:07Z"}, {Key: "vcs.modified", Value: "true"}},
	}
	v := versionOf(built)
	if want := "tidings v0.4.0 (commit 0123456789ab with changes, client-go v0.37.1, "; !strings.HasPrefix(v.String(), want) {
		t.Errorf("got %q, want it to begin with %q", v, want)
	}
	if v.Time != "2026-03-04T05:06:07Z" || v.Revision != "0123456789abcdef" {
		t.Errorf("got %+v", v)
	}
	if bare := versionOf(nil).String(); !strings.HasPrefix(bare, "tidings (devel) (go") {
		t.Errorf("without build information: %q", bare)
	}
}
