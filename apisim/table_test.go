package apisim

import (
	"bufio"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func (b *bench) seed(objects ...runtime.Object) {
	b.Helper()
	for _, obj := range objects {
		b.done(b.server.Create(b.ctx, obj))
	}
}

func TestTableOfEveryResourceHasNameAndAge(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		b.seed(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}})
		time.Sleep(90 * time.Second)
		b.want("service accounts", b.rows("/api/v1/serviceaccounts"), "Name Age", "a 90s")
		b.want("one", b.rows("/api/v1/namespaces/default/serviceaccounts/a"), "Name Age", "a 90s")
		b.want("of an empty list", b.rows("/apis/coordination.k8s.io/v1/leases"), "Name Age")
		b.want("as kubectl asks", b.rows("/api/v1/serviceaccounts", "application/json;as=Table;v=v1beta1;g=meta.k8s.io"), "Name Age", "a 90s")
	})
}

func pod(name string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	p.Spec.Containers = []corev1.Container{{Name: "a"}, {Name: "b"}}
	return p
}

func TestWhatTheRowsOfATableInclude(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		b.create("a", "x=y")
		const accept = "application/json;as=Table;v=v1;g=meta.k8s.io"
		for include, says := range map[string]string{"": `"kind":"PartialObjectMetadata"`, "?includeObject=Object": `"kind":"ConfigMap"`, "?includeObject=None": `"object":null`} {
			code, text := b.get("GET", "/api/v1/configmaps"+include, "", "Accept", accept)
			if code != 200 || !strings.Contains(text, says) || !strings.Contains(text, `"resourceVersion":"6"`) {
				b.Errorf("%q: %d %s, want %s", include, code, text, says)
			}
		}
		if code, text := b.get("GET", "/api/v1/configmaps?includeObject=All", "", "Accept", accept); code != 400 {
			b.Errorf("%d %s", code, text)
		}
		if code, text := b.get("GET", "/api/v1/configmaps", "", "Accept", strings.Replace(accept, "json", "vnd.kubernetes.protobuf", 1)); code != 406 {
			b.Errorf("in protobuf: %d %s", code, text)
		}
		if code, text := b.get("GET", "/api/v1/configmaps", "", "Accept", strings.Replace(accept, "Table", "Picture", 1)); code != 406 {
			b.Errorf("as a picture: %d %s", code, text)
		}
	})
}

func TestWatchOfATableNamesItsColumnsOnce(t *testing.T) {
	inBubble(t, Options{BookmarkInterval: time.Minute}, func(b *bench) {
		b.create("a")
		resp := b.do("GET", "/api/v1/namespaces/default/configmaps?watch=1&allowWatchBookmarks=true", "", "Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
		b.relabel("a", "n=1")
		lines := bufio.NewScanner(resp.Body)
		next := func(kind string, want ...string) {
			b.Helper()
			var event struct {
				Type   string
				Object metav1.Table
			}
			if !lines.Scan() || json.Unmarshal(lines.Bytes(), &event) != nil || event.Type != kind {
				b.Fatalf("%s, want %s", lines.Text(), kind)
			}
			b.want(kind, describeTable(event.Object), want...)
			if !strings.Contains(string(event.Object.Rows[0].Object.Raw), `"resourceVersion":"`+event.Object.ResourceVersion) {
				b.Errorf("%s: %s", kind, lines.Text())
			}
		}
		next("ADDED", "Name Age", "a 0s")
		next("MODIFIED", "", "a 0s")
		time.Sleep(61 * time.Second)
		next("BOOKMARK", "", " <unknown>")
		synctest.Wait()
	})
}
