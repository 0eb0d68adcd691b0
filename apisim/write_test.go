package apisim

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

func nodeNamed(name string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func TestWritesInBothEncodings(t *testing.T) {
	inBothEncodings(t, Options{}, func(b *bench, client kubernetes.Interface) {
		pods := client.CoreV1().Pods("default")
		given := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "web-"}}
		given.Spec.NodeName, given.Status.Phase = "n", corev1.PodRunning
		made, err := pods.Create(b.ctx, given, metav1.CreateOptions{})
		b.must(err)
		if !strings.HasPrefix(made.Name, "web-") || made.UID == "" || made.ResourceVersion == "" ||
			made.Generation != 1 || made.CreationTimestamp.IsZero() || made.Status.Phase != corev1.PodPending {
			b.Errorf("created %+v", made)
		}
		made.Spec.NodeName, made.Status.Phase = "other", corev1.PodFailed
		updated, err := pods.Update(b.ctx, made, metav1.UpdateOptions{})
		b.must(err)
		if updated.Generation != 2 || updated.Spec.NodeName != "other" ||
			updated.Status.Phase != corev1.PodPending || updated.ResourceVersion == made.ResourceVersion {
			b.Errorf("updated %+v", updated)
		}
		if _, err := pods.Update(b.ctx, made, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
			b.Errorf("an update of an old version: %v", err)
		}
		same, err := pods.Update(b.ctx, updated, metav1.UpdateOptions{})
		if err != nil || same.ResourceVersion != updated.ResourceVersion {
			b.Errorf("an update that changes nothing: %+v, %v", same, err)
		}
		updated.Status.Phase, updated.Spec.NodeName = corev1.PodRunning, "third"
		status, err := pods.UpdateStatus(b.ctx, updated, metav1.UpdateOptions{})
		if err != nil || status.Status.Phase != corev1.PodRunning || status.Spec.NodeName != "other" ||
			status.Generation != 2 {
			b.Errorf("the status became %+v, %v", status, err)
		}
		b.must(pods.Delete(b.ctx, made.Name, metav1.DeleteOptions{}))
		if _, err := pods.Get(b.ctx, made.Name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			b.Errorf("a deleted pod: %v", err)
		}
	})
}

func TestBadRequestsGetTheStatusOfKubernetes(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		b.create("a")
		const maps = "/api/v1/namespaces/default/configmaps"
		object := func(name string) string {
			return fmt.Sprintf(`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":%q}}`, name)
		}
		tests := map[string]struct {
			method, path, body string
			code               int
			says               string
		}{
			"unknown path":           {"GET", "/nothing/here", "", 404, "404"},
			"unknown resource":       {"GET", "/api/v1/widgets", "", 404, "could not find the requested resource"},
			"unknown group":          {"GET", "/apis/example.com/v1", "", 404, "could not find"},
			"namespace of a node":    {"GET", "/api/v1/namespaces/default/nodes", "", 404, "could not find"},
			"unknown subresource":    {"GET", maps + "/a/scale", "", 404, "could not find"},
			"missing object":         {"GET", maps + "/b", "", 404, `configmaps \"b\" not found`},
			"patch of all":           {"PATCH", maps, "{}", 405, "does not allow"},
			"patch of no kind":       {"PATCH", maps + "/a", "{}", 415, "application/merge-patch+json"},
			"namespaces at once":     {"DELETE", "/api/v1/namespaces", "", 405, "does not allow"},
			"finalizers are not got": {"GET", "/api/v1/namespaces/default/finalize", "", 405, "does not allow"},
			"bad parameter":          {"POST", maps + "?dryRun=Some", object("b"), 422, "dryRun"},
			"no metadata":            {"POST", maps, `{"kind":"ConfigMap","apiVersion":"v1","metadata":7}`, 400, "cannot be handled as a ConfigMap"},
			"another version":        {"POST", maps, `{"kind":"ConfigMap","apiVersion":"v2","metadata":{"name":"b"}}`, 400, "does not match the expected API version (v1)"},
			"deletion of all":        {"DELETE", "/api/v1/configmaps", "", 405, "does not allow"},
			"create in none":         {"POST", "/api/v1/configmaps", object("b"), 405, "does not allow"},
			"name without namespace": {"GET", "/api/v1/configmaps/a", "", 404, "could not find"},
			"create by name":         {"POST", maps + "/a", object("a"), 405, "does not allow"},
			"exists":                 {"POST", maps, object("a"), 409, "already exists"},
			"malformed body":         {"POST", maps, "{", 400, "cannot be handled as a ConfigMap"},
			"wrong kind":             {"POST", maps, `{"kind":"Secret","apiVersion":"v1","metadata":{"name":"b"}}`, 400, "Secret"},
			"no name":                {"POST", maps, object(""), 422, "name or generateName is required"},
			"bad name":               {"POST", maps, object("A_b"), 422, "metadata.name"},
			"another namespace":      {"POST", maps, `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"b","namespace":"other"}}`, 400, "does not match the namespace"},
			"missing namespace":      {"POST", "/api/v1/namespaces/nowhere/configmaps", object("b"), 404, "nowhere"},
			"version on create":      {"POST", maps, `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"b","resourceVersion":"1"}}`, 500, "resourceVersion should not be set"},
			"another name on update": {"PUT", maps + "/b", object("a"), 400, "does not match the name on the URL"},
			"too large":              {"POST", maps, `"` + strings.Repeat("x", maxBody) + `"`, 413, "limit is"},
			"update of no UID":       {"PUT", "/apis/coordination.k8s.io/v1/namespaces/default/leases/l", `{"kind":"Lease","apiVersion":"coordination.k8s.io/v1","metadata":{"name":"l","uid":"u"}}`, 409, "uid mismatch"},
			"label selector":         {"GET", maps + "?labelSelector=a+in+b", "", 400, "unable to parse requirement"},
			"field selector":         {"GET", maps + "?fieldSelector=data.x%3D1", "", 400, "is not a known field selector"},
			"version":                {"GET", maps + "?resourceVersion=abc", "", 400, "abc"},
			"match without version":  {"GET", maps + "?resourceVersionMatch=Exact", "", 422, "resourceVersionMatch"},
			"token":                  {"GET", maps + "?continue=%25", "", 400, "continue"},
		}
		for name, test := range tests {
			code, text := b.get(test.method, test.path, test.body, "Content-Type", "application/json")
			if code != test.code || !strings.Contains(text, test.says) {
				b.Errorf("%s: %d %s, want %d and that it says %q", name, code, text, test.code, test.says)
			}
			var status metav1.Status
			if name != "unknown path" && (json.Unmarshal([]byte(text), &status) != nil || status.Kind != "Status" || int(status.Code) != code) {
				b.Errorf("%s: the answer is no Status: %s", name, text)
			}
		}
		if code, text := b.get("POST", maps, "a: b", "Content-Type", "text/plain"); code != 415 {
			b.Errorf("plain text: %d %s", code, text)
		}
		if code, text := b.get("GET", maps, "", "Accept", "text/html"); code != 406 {
			b.Errorf("HTML: %d %s", code, text)
		}
	})
}

// register adds a resource without a definition.
func (b *bench) register() {
	b.must(b.server.Register(Resource{
		Group: "example.com", Version: "v1", Name: "widgets", Kind: "Widget", Namespaced: true,
		HasStatus: true,
	}))
}

// TestAnObjectOfTheClusterLosesItsNamespace writes an object that has no namespace, by its scope, with
// one: an API server clears it.
func TestAnObjectOfTheClusterLosesItsNamespace(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		namespaces := b.typed.CoreV1().Namespaces()
		shop := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: "shop"}}
		created, err := namespaces.Create(b.ctx, shop, metav1.CreateOptions{})
		b.must(err)
		created.Namespace = "shop"
		updated, err := namespaces.Update(b.ctx, created, metav1.UpdateOptions{})
		b.must(err)
		patched, err := namespaces.Patch(b.ctx, "shop", types.MergePatchType,
			[]byte(`{"metadata":{"namespace":"shop","labels":{"a":"b"}}}`), metav1.PatchOptions{})
		b.must(err)
		for _, n := range []*corev1.Namespace{updated, patched} {
			if n.Namespace != "" {
				t.Errorf("got the namespace %q, want none", n.Namespace)
			}
		}
	})
}

func TestRegisteredResourceIsServedAsMaps(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		b.register()
		for _, kind := range []string{"Widget", ""} {
			r := Resource{Group: "example.com", Version: "v1", Name: "widgets", Kind: kind}
			if err := b.server.Register(r); err == nil {
				b.Errorf("a resource was registered twice, or without a kind: %+v", r)
			}
		}
		widgets := b.dynamic().Resource(widgetsV1).Namespace("default")
		made, err := widgets.Create(b.ctx, widget("v1", "a"), metav1.CreateOptions{})
		b.must(err)
		made.Object["spec"] = map[string]any{"size": int64(2)}
		made.Object["status"] = map[string]any{"ready": true}
		updated, err := widgets.Update(b.ctx, made, metav1.UpdateOptions{})
		if err != nil || updated.GetGeneration() != 2 || updated.Object["status"] != nil {
			b.Errorf("updated %v, %v", updated, err)
		}
		updated.Object["status"] = map[string]any{"ready": true}
		updated, err = widgets.UpdateStatus(b.ctx, updated, metav1.UpdateOptions{})
		if err != nil || updated.Object["status"] == nil || updated.GetGeneration() != 2 {
			b.Errorf("the status became %v, %v", updated, err)
		}
		list, err := widgets.List(b.ctx, metav1.ListOptions{})
		if err != nil || len(list.Items) != 1 || list.Items[0].GetKind() != "Widget" {
			b.Errorf("listed %v, %v", list, err)
		}
		onlyMetadata, err := metadata.NewForConfig(config(b.server, ""))
		b.must(err)
		of := onlyMetadata.Resource(widgetsV1).Namespace("default")
		if meta, err := of.Get(b.ctx, "a", metav1.GetOptions{}); err != nil || meta.Name != "a" {
			b.Errorf("metadata %+v, %v", meta, err)
		}
	})
}

func TestListenTLS(t *testing.T) {
	server := Start(t)
	url, authority, err := server.ListenTLS("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	config := &rest.Config{Host: url}
	config.CAData = authority
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Discovery().ServerVersion(); err != nil {
		t.Error(err)
	}
}

func TestListenServesOverTCP(t *testing.T) {
	server, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	url, err := server.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.Get(url + "/version")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("status %d", resp.StatusCode)
	}
	if err := server.Close(); err != nil {
		t.Error(err)
	}
	if err := server.Close(); err != nil {
		t.Errorf("Close again: %v", err)
	}
	if _, err := http.Get(url + "/version"); err == nil {
		t.Error("a closed server answers")
	}
	if _, err := server.Listen("127.0.0.1:0"); err == nil {
		t.Error("a closed server listens")
	}
	if _, err := New(Options{HistoryLimit: -1}); err == nil {
		t.Error("a negative limit was taken")
	}
}
