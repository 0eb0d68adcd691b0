package sharedinformer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/tidings-go/tidings/internal/see/lograte"
	"github.com/tidings-go/tidings/store"
)

// TestReportsAreBounded loses two reports while the error handler is slow.
func TestReportsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var pairs []string
		release := make(chan struct{})
		before := utilruntime.ErrorHandlers
		defer func() { utilruntime.ErrorHandlers = before }()
		utilruntime.ErrorHandlers = []utilruntime.ErrorHandler{
			func(_ context.Context, _ error, _ string, all ...any) {
				<-release
				pairs = append(pairs, fmt.Sprint(all...))
			},
		}
		var r reporter
		report := func(n int) {
			for range n {
				r.report(t.Context(), errors.New("no"), "text")
			}
			synctest.Wait()
		}
		report(1)
		report(maxReports + 2)
		close(release)
		synctest.Wait()
		report(2)
		want := append(make([]string, 1+maxReports), "unreported2", "")
		if !slices.Equal(pairs, want) {
			t.Errorf("the reports have the pairs %q, want %q", pairs, want)
		}
	})
}

func TestReportsOfAnInformer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told := quietErrors(t)
		i := New(Options{Source: &script{}})
		for _, pause := range []time.Duration{0, lograte.Period - 1, 1} {
			time.Sleep(pause)
			i.reportIndexErrors([]store.IndexError{{Err: errors.New("no")}})
			i.reports.wait()
		}
		i.reportNotRun(errors.New("no"))
		i.reports.wait()
		failed := "An index function failed; the object has no entry in that index"
		if want := []string{failed, failed, "The reflector did not run"}; !slices.Equal(*told, want) {
			t.Errorf("told %q, want %q", *told, want)
		}
	})
}
