package debug

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/health"
	"github.com/tidings-go/tidings/source"
)

// TestANameIsFound: a bare name is the key of an object with that name, and a part of it leads to
// keys to choose from.
func TestANameIsFound(t *testing.T) {
	inWorld(t, Options{}, func(w *world) {
		if k := getJSON[KeyFigures](w, "/key?key=c2"); k.Key != "a/c2" || len(k.Cached) != 1 {
			t.Errorf("c2 is %q, cached %d times", k.Key, len(k.Cached))
		}
		if k := getJSON[KeyFigures](w, "/key?key=c"); !slices.Equal(k.Candidates, []string{"a/c0", "a/c1", "a/c2"}) {
			t.Errorf("the candidates are %v", k.Candidates)
		}
		w.has("/key?key=c", true, "Keys that contain it", `href="key?key=a%2Fc1"`)
		for text, want := range map[string]string{"c1": "a/c1", "": "", "none": "", "a/c": "a/c0 a/c1 a/c2"} {
			if got := strings.Join(getKeys(w, text), " "); got != want {
				t.Errorf("the keys that contain %q are %q, want %q", text, got, want)
			}
		}
	})
}

func getKeys(w *world, text string) (keys []string) {
	w.Helper()
	w.fatal(json.Unmarshal([]byte(w.get("/keys?text="+text)), &keys))
	return keys
}

// TestChildrenAreLinks: the page of an object names the objects that it owns, but for Secrets.
func TestChildrenAreLinks(t *testing.T) {
	inWorld(t, Options{}, func(w *world) {
		owner, err := apisim.Get[*corev1.ConfigMap](w.Context(), w.server, "a", "c0")
		w.fatal(err)
		of := []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "c0", UID: owner.UID}}
		w.create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "child", OwnerReferences: of}})
		w.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "veiled", OwnerReferences: of}})
		w.pass(time.Second)
		w.has(someKey, true, "<dt>Children</dt>", `<a href="key?key=a%2Fchild">a/child</a> in configmaps.v1`)
		w.has(someKey, false, "veiled")
		k := getJSON[KeyFigures](w, someKey)
		if len(k.Cached[0].Children) != 1 {
			t.Errorf("the children are %+v", k.Cached[0].Children)
		}
	})
}

// TestCommandsToCopy: the object on the server, the role that is missing, and profiles.
func TestCommandsToCopy(t *testing.T) {
	inWorld(t, Options{}, func(w *world) {
		w.has(someKey, true, "kubectl get configmaps c0 -n a -o yaml")
		w.has("/", true, "kind: ClusterRole", "resources: [&#34;pods&#34;]", "verbs: [get, list, watch]")
		w.has(configMaps, true, "go tool pprof -top -tagfocus handler=slow ", "kubectl get configmaps -A")
		w.has("/controller?name=labels", true, "-tagfocus controller=labels ")
	})
	apps := source.Resource{Group: "apps", Version: "v1", Name: "deployments"}
	for key, want := range map[string]string{
		"a/web":   "kubectl get deployments.v1.apps web -n a -o yaml --show-managed-fields",
		"a/x; ls": "kubectl get deployments.v1.apps 'x; ls' -n a -o yaml --show-managed-fields",
		"it's":    `kubectl get deployments.v1.apps 'it'\''s' -o yaml --show-managed-fields`,
	} {
		if got := kubectlGet(apps, key); got != want {
			t.Errorf("%s: %s, want %s", key, got, want)
		}
	}
}

// TestFurtherPages of a list, and its ends.
func TestFurtherPages(t *testing.T) {
	at := func(from string) Pager {
		return pagerOf(httptest.NewRequest("GET", "/informer?name=a&search=x&from="+from, nil), 250, 100)
	}
	for from, want := range map[string]Pager{
		"":     {0, 100, 250, "", "informer?from=100&name=a&search=x"},
		"100":  {100, 200, 250, "informer?from=0&name=a&search=x", "informer?from=200&name=a&search=x"},
		"200":  {200, 250, 250, "informer?from=100&name=a&search=x", ""},
		"-7":   {0, 100, 250, "", "informer?from=100&name=a&search=x"},
		"9999": {249, 250, 250, "informer?from=149&name=a&search=x", ""},
	} {
		if got := at(from); got != want {
			t.Errorf("from %q: %+v, want %+v", from, got, want)
		}
	}
	if got := pagerOf(httptest.NewRequest("GET", "/?from=3", nil), 0, 20); got != (Pager{}) {
		t.Errorf("of nothing: %+v", got)
	}
}

// TestRowsAreSortedAndFiltered by the parameters of the first page.
func TestRowsAreSortedAndFiltered(t *testing.T) {
	inWorld(t, Options{}, func(w *world) {
		for query, want := range map[string]string{
			"": "configmaps.v1 secrets.v1 pods.v1", "sort=name": "configmaps.v1 pods.v1 secrets.v1",
			"sort=objects&filter=s.v1": "configmaps.v1 secrets.v1 pods.v1", "filter=pod": "pods.v1", "sort=other": "configmaps.v1 secrets.v1 pods.v1",
		} {
			var names []string
			for _, i := range getJSON[Overview](w, "/?"+query).Informers {
				names = append(names, i.Name)
			}
			if got := strings.Join(names, " "); got != want {
				t.Errorf("%s: %s, want %s", query, got, want)
			}
		}
		w.has("/?filter=pod", true, `value="pod"`)
	})
}

// TestStrip draws states by their durations.
func TestStrip(t *testing.T) {
	at := func(ago time.Duration) time.Time { return time.Now().Add(-ago) }
	got := string(strip([]health.Transition{
		{State: health.StateListing, At: at(10 * time.Minute)}, {State: health.StateWatching, At: at(9 * time.Minute)},
		{State: health.StateBackoff, At: at(3 * time.Minute)},
	}))
	for _, want := range []string{
		`class="between" x="0.0" y="0" width="60.0"`, `class="following" x="60.0" y="0" width="360.0"`,
		`class="failing" x="420.0" y="0" width="180.0"`, "Backoff from ",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in %s", want, got)
		}
	}
	if strip(nil) != "" {
		t.Error("no states are drawn")
	}
}

// TestLegends: headings have their explanations where they stand, and at the end of the page.
func TestLegends(t *testing.T) {
	page := labelled(`<thead><tr><th scope="col">Name</th><th scope="col" class="n">Lag</th></tr></thead>` +
		`<tr><th scope="row">a</th><td class="n">1</td></tr>`)
	want := fmt.Sprintf(`<th scope="col" class="n"><abbr title="%s">Lag</abbr></th>`, explanations["Lag"])
	if !strings.Contains(page, want) || !strings.Contains(page, `<td data-label="Lag" class="n"><div>1</div></td>`) {
		t.Error(page)
	}
	inWorld(t, Options{}, func(w *world) {
		w.has("/", true, "What the words mean", "<dt>Held back</dt>", "<dt>Backoff</dt>")
		w.has("/", false, "<dt>Folded</dt>")
	})
}
