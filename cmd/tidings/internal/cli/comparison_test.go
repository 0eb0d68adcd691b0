package cli

import (
	"bytes"
	"context"
	"runtime/debug"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidings-go/tidings/cmd/tidings/internal/view"
)

func TestComparisonFindsDifferences(t *testing.T) {
	var out bytes.Buffer
	d := &demonstration{
		o:      demoOptions{pods: 20, seed: 1, listen: anyPort},
		screen: view.NewScreen(&out, &out, view.ScreenOptions{}), server: new(server),
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	if err := d.open(ctx, &common{}); err != nil {
		t.Fatal(err)
	}
	defer d.server.close() //nolint:errcheck // the test is over
	if err := d.sync(ctx, ctx); err != nil {
		t.Fatal(err)
	}
	if err := d.settle(ctx); err != nil {
		t.Fatal(err)
	}
	if found, err := d.compare(ctx); err != nil || found.err() != nil {
		t.Fatalf("before any change: %v, %v", found, err)
	}
	// The informers do not receive writes after their end.
	if err := d.factory.Shutdown(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := d.server.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "late"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := d.server.Delete(ctx, corev1.SchemeGroupVersion.WithResource("nodes"), "", "node-01"); err != nil {
		t.Fatal(err)
	}
	found, err := d.compare(ctx)
	if err != nil {
		t.Fatal(err)
	}
	// Each of the two is a difference of the cache and of the handler's events.
	if len(found.differences) != 4 || !strings.Contains(found.err().Error(), "node-01 is cached, but the server has deleted it") {
		t.Errorf("found %d differences: %v", len(found.differences), found)
	}
}

func TestVersionOf(t *testing.T) {
	built := &debug.BuildInfo{
		Main: debug.Module{Version: "v0.4.0"}, Deps: []*debug.Module{{Path: "k8s.io/client-go", Version: "v0.37.1"}},
	}
	for info, want := range map[*debug.BuildInfo]string{
		built: "tidings v0.4.0 (client-go v0.37.1, go", nil: "tidings (devel) (go",
	} {
		if got := versionOf(info); !strings.HasPrefix(got, want) {
			t.Errorf("got %q, want it to begin with %q", got, want)
		}
	}
}
