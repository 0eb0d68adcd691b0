//go:build !race

// A write to a shared object is a data race by its nature: with the race detector on, that ends
// this test. Without it, the mutation detector has to find it.

package contract_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
)

// named reports whether the handlers are the one that did it, and perhaps others.
func named(handlers []string, culprit string) bool {
	if culprit == "" {
		return len(handlers) == 0
	}
	return slices.Contains(handlers, culprit)
}

func TestP17_MutationIsFoundWithFieldAndHandler(t *testing.T) {
	for _, how := range []string{"handler", "reader"} {
		t.Run(how, func(t *testing.T) {
			o := tidings.FactoryOptions{DetectMutations: true}
			propertyWith(t, o, tidings.Selection{}, func(w *world) {
				w.create("a", "1")
				handler := ""
				if how == "handler" {
					handler = "meddler"
					w.probe.meddle("meddler")
				}
				w.probe.handle(func(event) {}, tidings.HandlerOptions{Name: "honest"})
				w.start()
				if how == "reader" {
					w.probe.meddle("")
				}
				time.Sleep(10 * time.Second)
				synctest.Wait()
				if len(w.mutations) != 1 {
					w.Fatalf("found %d mutations, want 1", len(w.mutations))
				}
				m := <-w.mutations
				if m.Key != "default/a" || !named(m.Handlers, handler) ||
					fmt.Sprint(m.Fields) != "[metadata.annotations]" || m.Informer != w.probe.informer().Name() {
					w.Errorf("found %+v", m)
				}
			})
		})
	}
}

// TestP17_WriteToASharedPartIsFoundInEveryObject writes to the labels of one replica,
// which others have in common with it: each of them is named.
func TestP17_WriteToASharedPartIsFoundInEveryObject(t *testing.T) {
	same := tidings.NewTransform(func(pod *corev1.Pod) (*corev1.Pod, error) { return pod, nil })
	for name, transform := range map[string]*tidings.Transform{"decoded": nil, "transformed": same} {
		t.Run(name,
			func(t *testing.T) { findInEveryObject(t, tidings.Selection{Transform: transform}) })
	}
}

func findInEveryObject(t *testing.T, s tidings.Selection) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, tidings.FactoryOptions{DetectMutations: true}, apisim.Options{})
		defer w.end()
		_, all := replicasOf(w, s)
		affected := map[string]bool{}
		for _, pod := range all {
			if inCommon(pod, all[7]) {
				affected["default/"+pod.Name] = true
			}
		}
		if len(affected) < 4 {
			t.Fatalf("%d pods have their labels in common", len(affected))
		}
		all[7].Labels["app"] = "changed"
		time.Sleep(10 * time.Second)
		synctest.Wait()
		for range len(affected) {
			select {
			case m := <-w.mutations:
				if !affected[m.Key] || fmt.Sprint(m.Fields) != "[metadata.labels.app]" {
					t.Errorf("found %+v", m)
				}
				delete(affected, m.Key)
			default:
			}
		}
		if len(affected) != 0 || len(w.mutations) != 0 {
			t.Errorf("not found: %v; found beside: %d", affected, len(w.mutations))
		}
	})
}

func counted(u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	u.Object["counts"] = map[string]any{"one": 1, "all": []int{1, 2}}
	return u, nil
}

// TestP17_ValuesThatNoJSONHas: a program that writes an int into an object that is held as
// maps is reported, and so are writes beside one that its transform has put there.
func TestP17_ValuesThatNoJSONHas(t *testing.T) {
	for name, transform := range map[string]*tidings.Transform{
		"written":     nil,
		"transformed": tidings.NewTransform(counted),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, nil, tidings.FactoryOptions{DetectMutations: true},
					apisim.Options{})
				defer w.end()
				i, err := tidings.Dynamic(w.factory, configMaps,
					tidings.Selection{Transform: transform})
				if err != nil {
					t.Fatal(err)
				}
				w.create("a", "1")
				w.start()
				u, err := i.Lister().Get("default/a")
				if err != nil {
					t.Fatal(err)
				}
				u.Object["data"].(map[string]any)["n"] = 2
				if transform != nil {
					u.Object["counts"].(map[string]any)["all"].([]int)[1] = 3
				}
				time.Sleep(10 * time.Second)
				synctest.Wait()
				want := map[bool]string{true: "[data.n]", false: "[counts.all data.n]"}[transform == nil]
				if len(w.mutations) != 1 {
					t.Fatalf("found %d mutations, want 1", len(w.mutations))
				}
				if m := <-w.mutations; fmt.Sprint(m.Fields) != want {
					t.Errorf("found %v, want %s", m.Fields, want)
				}
			})
		})
	}
}
