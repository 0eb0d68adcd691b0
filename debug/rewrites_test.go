package debug

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/tidings-go/tidings/apisim"
)

// apply writes data of the ConfigMap a/applied as a field manager.
func (w *world) apply(manager string, data map[string]string) {
	w.Helper()
	client, err := kubernetes.NewForConfig(w.server.Config())
	w.fatal(err)
	_, err = client.CoreV1().ConfigMaps("a").Apply(w.Context(),
		applycorev1.ConfigMap("applied", "a").WithData(data),
		metav1.ApplyOptions{FieldManager: manager, Force: true})
	w.fatal(err)
}

// TestWhoChangedAField: the page of a key has the last writer of each field, and finds fields.
func TestWhoChangedAField(t *testing.T) {
	inWorld(t, Options{}, func(w *world) {
		const page = "/key?key=a/applied"
		w.apply("user", map[string]string{"value": "first", "other": "text"})
		w.pass(time.Minute)
		w.apply("pipeline", map[string]string{"value": "second"})
		w.pass(time.Minute)
		row := func(field, manager string) string {
			return fmt.Sprintf(`<th scope="row">%s</th><td>%s</td><td>Apply</td>`, field, manager)
		}
		w.has(page, true, row(".data.value", "pipeline"), row(".data.other", "user"))
		w.has(page, false, row(".data.value", "user"), "no managed fields")
		w.has(page+"&field=data.val", true, row(".data.value", "pipeline"))
		w.has(page+"&field=data.val", false, row(".data.other", "user"))
		w.has(page+"&field=missing", true, "No managed field contains “missing”")
		f := getJSON[struct{ Cached []Cached }](w, page+"&field=data.val")
		if len(f.Cached) != 1 || len(f.Cached[0].Managers) != 1 || f.Cached[0].Managers[0].Name != "pipeline" {
			t.Errorf("the JSON form: %+v", f.Cached)
		}
	})
}

func TestAPageHasTheFirstFields(t *testing.T) {
	var fields []string
	for i := range 70 {
		fields = append(fields, fmt.Sprint(".data.", i))
	}
	all := []Manager{{Name: "a", Fields: fields}, {Name: "b", Fields: fields}, {Name: "c", Fields: fields}}
	got, found := fieldWriters(all)
	if len(got) != listedFields || found != 210 || got[69].Name != "a" || got[99].Name != "b" {
		t.Errorf("%d fields of %d, the last one is %+v", len(got), found, got[len(got)-1])
	}
}

// TestPagesNameFightsAndLags: a user undoes the label that calls set.
func TestPagesNameFightsAndLags(t *testing.T) {
	inWorld(t, Options{}, func(w *world) {
		const controllerPage = "/controller?name=labels"
		w.has(controllerPage, true, "Writes of the manager", "3 sent", "Informers that it follows")
		w.has(controllerPage, false, "Fights")
		for range 10 {
			w.pass(time.Minute)
			w.unlabel("c1")
		}
		w.pass(time.Second)
		w.has(controllerPage, true, "Fights", "metadata.labels.app", "not known",
			"configmaps.v1</a></th><td class=\"n\">13</td>", "is changed in turn by the calls of a/c1 and by others")
		w.has(someKey[:len(someKey)-1]+"1", true, "fights: metadata.labels.app of a/c1", "by this controller")
		h := getJSON[struct {
			Health struct{ Fights []struct{ Object string } }
			Guard  struct{ Sent int }
		}](w, controllerPage)
		if len(h.Health.Fights) != 1 || h.Health.Fights[0].Object != "a/c1" || h.Guard.Sent != 13 {
			t.Errorf("the JSON form: %+v", h)
		}
		found := false
		for _, p := range getJSON[plain](w, "/").Problems {
			found = found || strings.HasPrefix(p.What, "metadata.labels.app of a/c1 is changed in turn")
		}
		if !found {
			t.Error("the overview has no problem of the fight")
		}
	})
}

// unlabel removes the labels of a ConfigMap.
func (w *world) unlabel(name string) {
	w.Helper()
	obj, err := apisim.Get[*corev1.ConfigMap](w.Context(), w.server, "a", name)
	w.fatal(err)
	obj.Labels = nil
	_, err = apisim.Update(w.Context(), w.server, obj)
	w.fatal(err)
}
