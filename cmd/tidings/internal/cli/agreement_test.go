package cli

import (
	"bytes"
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidings-go/tidings/cmd/tidings/internal/problem"
	"github.com/tidings-go/tidings/cmd/tidings/internal/view"
)

func TestDisagreementIsFoundAndNamed(t *testing.T) {
	var out bytes.Buffer
	d := &demonstration{
		o:      demoOptions{pods: 20, seed: 1, listen: anyPort},
		screen: view.NewScreen(&out, &out, view.ScreenOptions{}), ledger: view.NewLedger(),
		failed: make(chan struct{}),
	}
	ctx := t.Context()
	if err := d.open(ctx, &common{}); err != nil {
		t.Fatal(err)
	}
	defer d.server.Close()
	following, stop := context.WithCancel(ctx)
	defer stop()
	if err := d.sync(ctx, following); err != nil {
		t.Fatal(err)
	}
	defer d.access.remove()
	if err := d.settle(ctx); err != nil {
		t.Fatal(err)
	}
	if found, err := d.compare(ctx); err != nil || found.err() != nil {
		t.Fatalf("before any change: %v, %v", found, err)
	}
	// What the server is told now, the informers do not see any more.
	if err := d.factory.Shutdown(ctx); err != nil {
		t.Fatal(err)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "late"}}
	if _, err := d.server.Create(ctx, namespace); err != nil {
		t.Fatal(err)
	}
	node := d.nodeOf(t)
	if _, err := d.server.Delete(ctx, node); err != nil {
		t.Fatal(err)
	}
	found, err := d.compare(ctx)
	if err != nil {
		t.Fatal(err)
	}
	// Each of the two shows in the cache and in what the handler was told.
	if found.differ != 4 || problem.Code(found.err()) != problem.CodeFault {
		t.Fatalf("found %d differences: %v", found.differ, found)
	}
	for _, part := range []string{"differ in 4 places", node.Name + " is cached and gone from the server"} {
		if !strings.Contains(found.err().Error(), part) {
			t.Errorf("%q is not in: %v", part, found.err())
		}
	}
}

// nodeOf returns a node of the fleet.
func (d *demonstration) nodeOf(t *testing.T) *corev1.Node {
	t.Helper()
	for obj := range d.fleet.Objects() {
		if node, ok := obj.(*corev1.Node); ok {
			return node
		}
	}
	t.Fatal("the fleet has no node")
	return nil
}
