package apisim

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// busyServer returns a server with something of everything that a snapshot holds.
func busyServer(tb testing.TB) *Server {
	tb.Helper()
	server := Start(tb)
	if err := server.Register(Resource{Group: "example.net", Version: "v2", Name: "gadgets", Kind: "Gadget", ShortNames: []string{"gd"}}); err != nil {
		tb.Fatal(err)
	}
	if err := server.LoadFrom("widgets", strings.NewReader(widgetDefinition)); err != nil {
		tb.Fatal(err)
	}
	gadget := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.net/v2", "kind": "Gadget", "metadata": map[string]any{"name": "g"}, "weight": 1.5}}
	held := configMap("held", "a=b")
	held.Data = map[string]string{"text": "<b>\u2028"}
	held.Finalizers = []string{"example.com/hold"}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p"}, Spec: corev1.PodSpec{NodeName: "n"}, Status: corev1.PodStatus{PodIP: "10.0.0.1"}}
	for _, obj := range []object{held, pod, gadget, widget("v1alpha1", "w"), configMap("gone")} {
		if _, err := server.Create(tb.Context(), obj); err != nil {
			tb.Fatal(err)
		}
	}
	for _, name := range []string{"held", "gone"} {
		if _, err := server.Delete(tb.Context(), configMaps, "default", name); err != nil {
			tb.Fatal(err)
		}
	}
	server.RemoveResource(corev1.SchemeGroupVersion.WithResource("secrets"))
	return server
}

func written(tb testing.TB, s *Server) string {
	tb.Helper()
	var b bytes.Buffer
	n, err := s.Snapshot().WriteTo(&b)
	if err != nil || n != int64(b.Len()) {
		tb.Fatalf("%d bytes of %d written, %v", n, b.Len(), err)
	}
	return b.String()
}

// stateOf returns what requests get of a server, by path.
func stateOf(t *testing.T, s *Server) map[string]string {
	b := &bench{T: t, server: s, ctx: t.Context()}
	state := make(map[string]string)
	for _, path := range []string{
		"/apis", "/apis/example.com/v1", "/apis/example.net/v2", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "/api/v1/namespaces", "/api/v1/configmaps", "/api/v1/pods", "/api/v1/secrets",
		"/apis/example.com/v1/widgets", "/apis/example.com/v1alpha1/widgets?fieldSelector=metadata.name%3Dw", "/apis/example.net/v2/gadgets",
	} {
		code, text := b.get("GET", path, "")
		state[path] = fmt.Sprintf("%d %s", code, text)
	}
	return state
}

func TestSnapshotFile(t *testing.T) {
	from := busyServer(t)
	text := written(t, from)
	if again := written(t, from); again != text {
		t.Errorf("written twice, it differs:\n%s\n%s", text, again)
	}
	to := Start(t)
	if _, err := to.Create(t.Context(), configMap("before")); err != nil {
		t.Fatal(err)
	}
	snapshot, err := to.ReadSnapshot(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := snapshot.Objects(), from.Snapshot().Objects(); got != want || want != 9 {
		t.Errorf("%d objects are read, and %d were written", got, want)
	}
	if got, want := snapshot.ResourceVersion(), from.Snapshot().ResourceVersion(); got != want {
		t.Errorf("version %s is read, and %s was written", got, want)
	}
	if code, _ := (&bench{T: t, server: to, ctx: t.Context()}).get("GET", "/api/v1/namespaces/default/configmaps/before", ""); code != 200 {
		t.Errorf("reading has changed the server: %d", code)
	}
	for range 2 { // a snapshot may be restored again
		to.Rewind(snapshot)
		got, want := stateOf(t, to), stateOf(t, from)
		for _, path := range slices.Sorted(maps.Keys(want)) {
			if got[path] != want[path] {
				t.Errorf("%s:\n got %s\nwant %s", path, got[path], want[path])
			}
		}
		if back := written(t, to); back != text {
			t.Errorf("written again, it is\n%s\nand was\n%s", back, text)
		}
		// It lives: what was being deleted goes, and custom objects can be made.
		released := configMap("held")
		if _, err := to.Update(t.Context(), released); err != nil {
			t.Error(err)
		}
		if _, err := to.Get(t.Context(), configMaps, "default", "held"); err == nil {
			t.Error("what was marked is not deleted without its finalizer")
		}
		if _, err := to.Create(t.Context(), widget("v1", "another")); err != nil {
			t.Error(err)
		}
		if _, err := to.Delete(t.Context(), definitions, "", "widgets.example.com"); err != nil {
			t.Error(err)
		}
		if _, err := to.Get(t.Context(), widgetsV1, "default", "w"); err == nil {
			t.Error("the definition is gone, and its objects are not")
		}
	}
}

func TestSnapshotFileThatIsNone(t *testing.T) {
	text := written(t, busyServer(t))
	lines := strings.SplitAfter(text, "\n")
	section := slices.IndexFunc(lines, func(line string) bool { return strings.Contains(line, `"definition":`) })
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", "it does not begin with the format"},
		{"something else", "apiVersion: v1\nkind: Pod\n", "it does not begin with the format"},
		{"another version", strings.Replace(text, snapshotFormat, "tidings-apisim-snapshot/2", 1), `"tidings-apisim-snapshot/1"`},
		{"cut between lines", strings.Join(lines[:len(lines)-2], ""), "it ends too early"},
		{"cut in a line", text[:len(text)-20], "it ends too early"},
		{"a type that is not there", strings.Replace(text, `"Version":"v1","Resource":"pods"`, `"Version":"v7","Resource":"pods"`, 1), "/v7, Resource=pods"},
		{"a name that cannot be", strings.Replace(text, `"name":"p"`, `"name":"P!"`, 1), "section 4: pods: object 1:"},
		{"a kind that is not the section's", strings.Replace(text, `"kind":"Pod"`, `"kind":"Node"`, 1), "pods: object 1: Node"},
		{"an unknown field", strings.Replace(text, `"podIP"`, `"podIPS"`, 1), `unknown field "status.podIPS"`},
		{"a version of the future", strings.Replace(text, `"resourceVersion":`, `"resourceVersion":1,"was":`, 1), "is not one from 1 to the snapshot's, 1"},
		{"no version", strings.Replace(text, `"name":"p","namespace":"default","uid"`, `"name":"p","resourceVersion":"x","uid"`, 1), "pods: object 1:"},
		{"a broken definition", strings.Replace(text, `"scope":"Namespaced"`, `"scope":"Everywhere"`, 1), "spec.scope"},
		{"an object twice", strings.Replace(text, `"objects":1`, `"objects":2`, 1), "object 2:"},
		{"a definition that is missing", strings.Replace(text, lines[section], strings.ReplaceAll(lines[section], "widgets", "wodgets"), 1), "there is no definition wodgets.example.com"},
		{"a section of nothing", strings.Replace(text, lines[section], `{"objects":1}`+"\n", 1), "it is of no resource"},
		{"a section twice", strings.Replace(text, lines[section], strings.Join(lines[section:section+2], "")+lines[section], 1), "there are two resources example.com/v1"},
		{"something behind", text + "{}", "something follows the last section"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.text == text {
				t.Fatal("the text is whole")
			}
			server := Start(t)
			before := written(t, server)
			_, err := server.ReadSnapshot(strings.NewReader(c.text))
			if err == nil || !strings.HasPrefix(err.Error(), "apisim: the snapshot cannot be read: ") || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if written(t, server) != before {
				t.Error("the server has changed")
			}
		})
	}
}

func TestSnapshotFileThatCannotBeRead(t *testing.T) {
	_, err := Start(t).ReadSnapshot(iotest.ErrReader(errBroken))
	if !errors.Is(err, errBroken) {
		t.Errorf("got %v", err)
	}
}

type brokenWriter struct{ left int }

var errBroken = errors.New("the disk is broken")

func (w *brokenWriter) Write(p []byte) (int, error) {
	if w.left -= len(p); w.left < 0 {
		return 0, errBroken
	}
	return len(p), nil
}

func TestSnapshotFileOnABrokenDisk(t *testing.T) {
	server := busyServer(t)
	for i := range 100 { // more than is buffered
		if _, err := server.Create(t.Context(), configMap(fmt.Sprintf("filler-%d", i))); err != nil {
			t.Fatal(err)
		}
	}
	for _, left := range []int{0, 5000} {
		n, err := server.Snapshot().WriteTo(&brokenWriter{left})
		if !errors.Is(err, errBroken) || n > int64(left) {
			t.Errorf("with room for %d: %d written, %v", left, n, err)
		}
	}
}

// FuzzReadSnapshot reads anything as a snapshot. What is read can be restored and is the
// same when it is written.
func FuzzReadSnapshot(f *testing.F) {
	text := written(f, busyServer(f))
	f.Add(text)
	for i := range strings.Count(text, "\n") {
		lines := strings.SplitAfter(text, "\n")
		f.Add(strings.Join(slices.Delete(lines, i, i+1), ""))
	}
	f.Fuzz(func(t *testing.T, text string) {
		server := Start(t)
		snapshot, err := server.ReadSnapshot(strings.NewReader(text))
		if err != nil {
			return
		}
		server.Rewind(snapshot)
		once := written(t, server)
		again, err := server.ReadSnapshot(strings.NewReader(once))
		if err != nil {
			t.Fatalf("what was written cannot be read: %v\n%s", err, once)
		}
		var b bytes.Buffer
		if _, err := again.WriteTo(&b); err != nil || b.String() != once {
			t.Errorf("written, read and written:\n%s\n%s\n%v", once, b.String(), err)
		}
		if !json.Valid([]byte(strings.SplitN(once, "\n", 2)[0])) {
			t.Errorf("the first line is no JSON: %s", once)
		}
	})
}
