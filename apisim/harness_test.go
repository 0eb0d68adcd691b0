package apisim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// The protocol is tested with client-go's own clients, which know nothing of this
// package: typed in both encodings, dynamic, and metadata-only.

var configMaps = corev1.SchemeGroupVersion.WithResource("configmaps")

type bench struct {
	*testing.T
	server *Server
	typed  kubernetes.Interface
	ctx    context.Context
}

// inBubble runs a test against a server, in virtual time.
func inBubble(t *testing.T, o Options, test func(b *bench)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := server.Close(); err != nil {
				t.Errorf("Close: %v", err)
			}
		}()
		typed, err := kubernetes.NewForConfig(config(server, ""))
		if err != nil {
			t.Fatal(err)
		}
		test(&bench{T: t, server: server, typed: typed, ctx: t.Context()})
	})
}

// must fails the test now if there is an error.
func (b *bench) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// done is must for a call that returns a value too.
func (b *bench) done(_ any, err error) {
	b.Helper()
	b.must(err)
}

func config(s *Server, contentType string) *rest.Config {
	c := s.Config()
	c.QPS = -1
	c.ContentType = contentType
	return c
}

func configMap(name string, labels ...string) *corev1.ConfigMap {
	c := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{}}}
	for _, label := range labels {
		key, value, _ := strings.Cut(label, "=")
		c.Labels[key] = value
	}
	return c
}

func (b *bench) create(name string, labels ...string) *corev1.ConfigMap {
	b.Helper()
	made, err := Create(b.ctx, b.server, configMap(name, labels...))
	b.must(err)
	return made
}

// relabel gives an object the labels, and no others.
func (b *bench) relabel(name string, labels ...string) *corev1.ConfigMap {
	b.Helper()
	made, err := Update(b.ctx, b.server, configMap(name, labels...))
	b.must(err)
	return made
}

func (b *bench) remove(name string) *corev1.ConfigMap {
	b.Helper()
	gone, err := b.server.Delete(b.ctx, configMaps, "default", name)
	b.must(err)
	return gone.(*corev1.ConfigMap)
}

// follow opens a watch and returns a function that describes the new events.
func (b *bench) follow(o metav1.ListOptions) func() []string {
	b.Helper()
	w, err := b.typed.CoreV1().ConfigMaps("default").Watch(b.ctx, o)
	b.must(err)
	return b.collect(w)
}

func (b *bench) collect(w apiwatch.Interface) func() []string {
	b.Cleanup(w.Stop)
	return func() []string {
		var got []string
		for {
			synctest.Wait()
			select {
			case e, open := <-w.ResultChan():
				if !open {
					return append(got, "END")
				}
				got = append(got, describe(e))
			default:
				return got
			}
		}
	}
}

func describe(e apiwatch.Event) string {
	if status, ok := e.Object.(*metav1.Status); ok {
		return fmt.Sprintf("%s %d %s", e.Type, status.Code, status.Reason)
	}
	obj := e.Object.(metav1.Object)
	text := fmt.Sprintf("%s %s@%s", e.Type, obj.GetName(), obj.GetResourceVersion())
	if obj.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true" {
		text += " end"
	}
	return text
}

func (b *bench) want(what string, got []string, want ...string) {
	b.Helper()
	if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
		b.Errorf("%s:\n got %q\nwant %q", what, got, want)
	}
}

func (b *bench) list(o metav1.ListOptions) (names []string, list *corev1.ConfigMapList, err error) {
	list, err = b.typed.CoreV1().ConfigMaps("default").List(b.ctx, o)
	if err == nil {
		for _, item := range list.Items {
			names = append(names, item.Name)
		}
	}
	return names, list, err
}

func at(version string) metav1.ListOptions { return metav1.ListOptions{ResourceVersion: version} }

func isStatus(err error, code int32, reason metav1.StatusReason) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Code == code && status.Status().Reason == reason
}

// version returns the newest version of the server.
func (b *bench) version() string {
	b.server.mu.Lock()
	defer b.server.mu.Unlock()
	return versionString(b.server.version)
}

// rows gets a table and writes the names of its columns, with their priority, and its
// rows, cells apart by spaces.
func (b *bench) rows(path string, accept ...string) []string {
	b.Helper()
	code, text := b.get("GET", path, "", "Accept", strings.Join(append(accept, "application/json;as=Table;v=v1;g=meta.k8s.io"), ","))
	var table metav1.Table
	if err := json.Unmarshal([]byte(text), &table); err != nil || code != http.StatusOK || table.Kind != "Table" {
		b.Fatalf("%s: %d %s, %v", path, code, text, err)
	}
	return describeTable(table)
}

func describeTable(table metav1.Table) []string {
	var lines []string
	line := func(cells ...any) { lines = append(lines, strings.TrimSuffix(fmt.Sprintln(cells...), "\n")) }
	var headers []any
	for _, h := range table.ColumnDefinitions {
		if h.Priority > 0 {
			headers = append(headers, fmt.Sprint(h.Name, "/", h.Priority))
		} else {
			headers = append(headers, h.Name)
		}
	}
	line(headers...)
	for _, row := range table.Rows {
		line(row.Cells...)
	}
	return lines
}

func (b *bench) decode(text string, into any) {
	b.Helper()
	b.must(json.Unmarshal([]byte(text), into))
}

// do sends a request past client-go.
func (b *bench) do(method, path, body string, header ...string) *http.Response {
	b.Helper()
	client, err := rest.HTTPClientFor(config(b.server, ""))
	b.must(err)
	r, err := http.NewRequestWithContext(b.ctx, method, "http://apisim.invalid"+path, strings.NewReader(body))
	b.must(err)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := client.Do(r)
	b.must(err)
	b.Cleanup(func() { resp.Body.Close() })
	return resp
}

// get sends a request past client-go and reads the answer.
func (b *bench) get(method, path, body string, header ...string) (int, string) {
	b.Helper()
	resp := b.do(method, path, body, header...)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	b.must(err)
	return resp.StatusCode, string(text)
}

// ask is a request, such as "GET /api/v1/pods", and the answer to it.
type ask struct {
	request, body string
	code          int
	says          string // a part of the answer
}

// ask sends requests with bodies of a media type; "" is JSON.
func (b *bench) ask(contentType string, asks ...ask) {
	b.Helper()
	for _, a := range asks {
		method, path, _ := strings.Cut(a.request, " ")
		code, text := b.get(method, path, a.body, "Content-Type", contentType)
		if code != a.code || !strings.Contains(text, a.says) {
			b.Errorf("%s %.200s: %d %s, want %d %s", a.request, a.body, code, text, a.code, a.says)
		}
	}
}
