package cache_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidings-go/tidings/apisim"
)

// writer makes random changes of config maps on a server, in the namespaces a and b.
type writer struct {
	t      *testing.T
	random *rand.Rand
	server *apisim.Server
	made   int
	notes  []string
}

func (w *writer) note(format string, args ...any) {
	w.notes = append(w.notes, time.Now().Format("15:04:05.000 ")+fmt.Sprintf(format, args...))
}

// begin creates the namespaces and some objects.
func (w *writer) begin() {
	for _, namespace := range []string{"a", "b"} {
		_, err := w.server.Create(w.t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
		must(w.t, err)
	}
	for range w.random.IntN(8) {
		w.createNext()
	}
}

// createNext creates an object with a new name.
func (w *writer) createNext() {
	m := &corev1.ConfigMap{Data: map[string]string{"some": "data"}}
	m.Namespace, m.Name = []string{"a", "b"}[w.random.IntN(2)], fmt.Sprintf("m%d", w.made)
	w.made++
	w.create(m)
}

func (w *writer) create(m *corev1.ConfigMap) {
	m.Labels = map[string]string{"n": strconv.Itoa(w.random.IntN(5))}
	created, err := w.server.Create(w.t.Context(), m)
	must(w.t, err)
	w.note("create %s", keyOf(created)+" "+wireState(created))
}

// list returns copies of the objects.
func (w *writer) list() (list []*corev1.ConfigMap) {
	objects, _, err := w.server.List(w.t.Context(), configMaps, "")
	must(w.t, err)
	for _, obj := range objects {
		list = append(list, obj.(*corev1.ConfigMap).DeepCopy())
	}
	return list
}

// write creates, changes, deletes or replaces an object.
func (w *writer) write() {
	objects := w.list()
	if len(objects) < 2 {
		w.createNext()
		return
	}
	m := objects[w.random.IntN(len(objects))]
	switch w.random.IntN(6) {
	case 0:
		w.createNext()
	case 1:
		w.remove(m)
	case 2:
		w.replace(m)
	default:
		m.Labels = map[string]string{"n": strconv.Itoa(w.random.IntN(5))}
		changed, err := w.server.Update(w.t.Context(), m)
		must(w.t, err)
		w.note("update %s", keyOf(changed)+" "+wireState(changed))
	}
}

// replace makes another object of the same name.
func (w *writer) replace(m *corev1.ConfigMap) {
	w.remove(m)
	m.UID, m.ResourceVersion, m.CreationTimestamp = "", "", metav1.Time{}
	w.create(m)
}

func (w *writer) remove(m *corev1.ConfigMap) (version string) {
	removed, err := w.server.Delete(w.t.Context(), configMaps, m.Namespace, m.Name)
	must(w.t, err)
	w.note("delete %s", keyOf(removed)+" "+wireState(removed))
	return removed.(metav1.Object).GetResourceVersion()
}

func wireState(obj any) string {
	m := obj.(metav1.Object)
	return fmt.Sprintf("n=%s@%s uid %s", labelOf(obj), m.GetResourceVersion(), m.GetUID())
}
