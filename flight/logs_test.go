package flight

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidings-go/tidings/internal/engine/tape"
	"github.com/tidings-go/tidings/internal/test/logtable"
)

// TestLogs makes recorders log each line of docs/logs.md, and no other.
func TestLogs(t *testing.T) {
	lines, dir := logtable.New(""), filepath.Join(t.TempDir(), "recordings")
	synctest.Test(t, func(t *testing.T) {
		r, err := New(Options{Dir: dir, Logger: lines.Logger()})
		if err != nil {
			t.Fatal(err)
		}
		for _, becomesFile := range []bool{false, true} {
			if becomesFile {
				if err := errors.Join(os.RemoveAll(dir), os.WriteFile(dir, nil, 0o600)); err != nil {
					t.Fatal(err)
				}
			}
			for _, reason := range []string{tape.ReasonPanic, tape.ReasonStuck, tape.ReasonRewind} {
				r.Ring().Event(reason, "pods.v1")
				time.Sleep(time.Minute)
			}
			r.onSignal(dir, os.Interrupt)
		}
	})
	if err := lines.Compare("../docs/logs.md", "Flight recordings"); err != nil {
		t.Error(err)
	}
}
