package main

import (
	"bufio"
	"context"
	"io"
	"testing"
	"testing/synctest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tidings-go/tidings/apisim"
	shopv1 "github.com/tidings-go/tidings/examples/clientgo/customtype/apis/shop/v1"
)

var resource = shopv1.SchemeGroupVersion.WithResource("widgets")

func widget(name, color string, pieces int64) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": shopv1.SchemeGroupVersion.String(),
		"kind":       "Widget",
		"metadata":   map[string]any{"namespace": "default", "name": name},
		"spec":       map[string]any{"color": color, "pieces": pieces},
	}}
}

func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, err := apisim.New(apisim.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer server.Close() //nolint:errcheck // the test is over
		err = server.Register(apisim.Resource{Group: resource.Group, Version: resource.Version, Name: resource.Resource, Kind: "Widget", Namespaced: true, HasStatus: true})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		for _, w := range []*unstructured.Unstructured{widget("gear", "red", 2), widget("lever", "blue", 1), widget("wheel", "red", 4)} {
			if _, err := server.Create(ctx, w); err != nil {
				t.Fatal(err)
			}
		}

		read, write := io.Pipe()
		ended := make(chan error, 1)
		go func() {
			ended <- run(ctx, server.Config(), write)
			write.Close() //nolint:errcheck // a pipe's Close returns nil
		}()
		lines := bufio.NewScanner(read)
		expect := func(want ...string) {
			t.Helper()
			for _, line := range want {
				if !lines.Scan() {
					t.Fatalf("the output ended before %q", line)
				}
				if lines.Text() != line {
					t.Errorf("printed %q, want %q", lines.Text(), line)
				}
			}
			synctest.Wait() // it has joined, and waits for an event
		}
		expect("  blue: 1 orders, 0 of 1 pieces made", "  red: 2 orders, 0 of 6 pieces made")

		obj, err := server.Get(ctx, resource, "default", "gear")
		if err != nil {
			t.Fatal(err)
		}
		changed := obj.DeepCopyObject().(*unstructured.Unstructured)
		changed.Object["spec"] = map[string]any{"color": "blue", "pieces": int64(2)}
		changed.Object["status"] = map[string]any{"made": int64(1)}
		if _, err := server.Update(ctx, changed); err != nil {
			t.Fatal(err)
		}
		expect("Updated default/gear", "  blue: 2 orders, 1 of 3 pieces made", "  red: 1 orders, 0 of 4 pieces made")
		if _, err := server.Create(ctx, widget("crank", "green", 5)); err != nil {
			t.Fatal(err)
		}
		expect("Added default/crank", "  green: 1 orders, 0 of 5 pieces made")
		if _, err := server.Delete(ctx, resource, "default", "wheel"); err != nil {
			t.Fatal(err)
		}
		expect("Deleted default/wheel", "  red: 0 orders, 0 of 0 pieces made")

		cancel()
		if err := <-ended; err != nil {
			t.Errorf("run: %v", err)
		}
	})
}
