package simulation

import (
	"context"
	"flag"
	"log/slog"
	"os"
	"runtime/debug"
	"testing"

	"github.com/go-logr/logr"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"

	"github.com/tidings-go/tidings/internal/test/seeds"
)

var (
	days     = seeds.New("sim", "TestDays", 15)
	firstOne = flag.Uint64("sim.first", 1, "the seed that TestDays begins with")
	soak     = flag.Duration("sim.soak", 0,
		"run seeds until this much time has passed, from one that the clock gives")
)

// TestMain discards the logs of client-go about intended failures. Its limit of reports sleeps by
// the clock of the first bubble, which other bubbles must not touch.
func TestMain(m *testing.M) {
	flag.Parse()
	utilruntime.ErrorHandlers = []utilruntime.ErrorHandler{func(context.Context, error, string, ...any) {}}
	debug.SetGCPercent(400) // the worlds are small and many
	klog.SetLogger(logr.Discard())
	slog.SetDefault(slog.New(slog.DiscardHandler))
	os.Exit(m.Run())
}
