package debug

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/controller"
)

// TestHandlersOfOneName has two handlers of one name, as two views of changes are: a page does not
// mix up their samples.
func TestHandlersOfOneName(t *testing.T) {
	inWorld(t, Options{}, func(w *world) {
		informer, err := tidings.For[*corev1.ConfigMap](w.shown[0].(*tidings.Factory), tidings.Selection{})
		w.fatal(err)
		for _, late := range []bool{true, false} {
			_, err := informer.AddHandler(tidings.Funcs[*corev1.ConfigMap]{
				OnUpdate: func(_, now *corev1.ConfigMap) {
					if late && now.Data["value"] == "last" {
						time.Sleep(3 * time.Second)
					}
				},
			}, tidings.HandlerOptions{Name: "twin"})
			w.fatal(err)
		}
		for range 60 {
			w.set("c2", "first")
			w.pass(time.Second)
		}
		w.set("c2", "last")
		w.pass(100 * time.Millisecond)
		w.set("c2", "first")
		w.pass(time.Second)
		behind := map[string]time.Duration{}
		for _, h := range getJSON[Overview](w, "/").Informers[0].Handlers {
			behind[h.Name] = h.Behind.Duration
		}
		if _, ok := behind["twin#2"]; !ok || behind["twin"] > 3*time.Second || behind["twin#2"] > 0 {
			t.Errorf("handlers are behind by %v", behind)
		}
	})
}

// TestControllersOfOneName has two controllers of one name, as the managers of two clusters have:
// each has a page.
func TestControllersOfOneName(t *testing.T) {
	inWorld(t, Options{}, func(w *world) {
		w.fatal(w.pages.Add(someController{"labels", 7}, someController{"labels", 9}))
		w.pass(5 * time.Second)
		o := getJSON[Overview](w, "/")
		var names []string
		for _, c := range o.Controllers {
			names = append(names, c.Health.Name)
		}
		if got := strings.Join(names, " "); got != "labels labels#2 labels#3" {
			t.Errorf("the controllers are %s", got)
		}
		w.has("/", true, `href="controller?name=labels%233"`)
		one := getJSON[ControllerFigures](w, "/controller?name=labels%233")
		if one.Health.Workers != 9 || one.Rate > 0 || len(one.LastCalls) != 1 || one.LastCalls[0].Key != "a/9" {
			t.Errorf("the third controller is %+v", one)
		}
		if first := getJSON[ControllerFigures](w, "/controller?name=labels"); first.Guard == nil ||
			getJSON[ControllerFigures](w, "/controller?name=labels%232").Guard != nil {
			t.Error("the guard is not that of the first controller alone")
		}
		calls := getJSON[KeyFigures](w, "/key?key=a/9").Calls
		if len(calls) != 1 || calls[0].Controller != "labels#3" {
			t.Errorf("the calls are %+v", calls)
		}
	})
}

// someController is a controller with a number.
type someController struct {
	name string
	n    int
}

func (c someController) Health() controller.Health {
	return controller.Health{Name: c.name, Workers: c.n, State: controller.StateRunning}
}

func (c someController) Calls(key string) []controller.Call {
	if key != "" && key != "a/9" || c.n != 9 {
		return nil
	}
	return []controller.Call{{Key: "a/9"}}
}
