package view_test

import (
	"maps"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/charmbracelet/x/ansi"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/cmd/tidings/internal/view"
)

var (
	at         = time.Date(2026, 3, 4, 5, 6, 7, 89e6, time.UTC)
	pods       = view.Type{Kind: schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, Singular: "pod", Plural: "pods"}
	deployment = view.Type{Kind: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, Singular: "deployment", Plural: "deployments"}
	nodes      = view.Type{Kind: schema.GroupVersionKind{Version: "v1", Kind: "Node"}, Singular: "node", Plural: "nodes"}
	widgets    = view.Type{Kind: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}, Singular: "widget", Plural: "widgets"}
)

// object makes an unstructured object; rest are its fields besides the metadata.
func object(of view.Type, namespace, name, version string, rest map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{
		"name": name, "uid": "uid-" + name, "resourceVersion": version,
		"creationTimestamp": at.Add(-3 * time.Hour).Format(time.RFC3339),
	}}}
	if namespace != "" {
		u.SetNamespace(namespace)
	}
	u.SetGroupVersionKind(of.Kind)
	maps.Copy(u.Object, rest)
	return u
}

func updated(of view.Type, old, now tidings.Object) view.Change {
	return view.Change{At: at, Of: of, Event: tidings.Updated, Old: old, New: now}
}

func replicas(version string, spec, ready int64, generation int64) *unstructured.Unstructured {
	u := object(deployment, "shop", "web", version, map[string]any{
		"spec":   map[string]any{"replicas": spec},
		"status": map[string]any{"readyReplicas": ready, "observedGeneration": generation},
	})
	u.SetGeneration(generation)
	return u
}

func runningPod(name string) *unstructured.Unstructured {
	return object(pods, "shop", name, "7", map[string]any{
		"spec": map[string]any{"nodeName": "node-03"},
		"status": map[string]any{"phase": "Running", "containerStatuses": []any{
			map[string]any{"name": "web", "ready": true, "restartCount": int64(2), "state": map[string]any{"running": map[string]any{}}},
		}},
	})
}

func TestLines(t *testing.T) {
	hostile := object(widgets, "shop", "x", "2", map[string]any{"spec": map[string]any{"note": "a\x1b[2Jb\nc\u202e"}})
	for _, c := range []struct {
		name   string
		change view.Change
		want   string
	}{
		{"added", view.Change{At: at, Of: pods, Event: tidings.Added, New: runningPod("web-1")},
			"05:06:07.089 + pod        shop/web-1  Running 1/1 on node-03, 2 restarts"},
		{"initial", view.Change{At: at, Of: pods, Event: tidings.Added, Initial: true, New: runningPod("web-1")},
			"05:06:07.089   pod        shop/web-1  Running 1/1 on node-03, 2 restarts, age 3h"},
		{"deleted", view.Change{At: at, Of: pods, Event: tidings.Deleted, Old: runningPod("web-1")},
			"05:06:07.089 - pod        shop/web-1  Running 1/1 on node-03, 2 restarts, lived 3h"},
		{"deleted unseen", view.Change{At: at, Of: widgets, Event: tidings.Deleted, Tombstone: true, Old: object(widgets, "", "w", "1", nil)},
			"05:06:07.089 - widget     w  lived 3h, deleted unseen: this is the last known state"},
		{"scaled", updated(deployment, replicas("5", 3, 3, 1), replicas("6", 5, 3, 2)),
			"05:06:07.089 ~ deployment shop/web  spec.replicas 3 → 5"},
		{"scaled and grown", updated(deployment, replicas("5", 3, 3, 1), replicas("6", 5, 4, 2)),
			"05:06:07.089 ~ deployment shop/web  spec.replicas 3 → 5  status.readyReplicas 3 → 4"},
		{"only noise", updated(deployment, replicas("5", 3, 3, 1), replicas("6", 3, 3, 2)),
			"05:06:07.089 ~ deployment shop/web  metadata.generation 1 → 2"},
		{"nothing", updated(deployment, replicas("5", 3, 3, 1), replicas("6", 3, 3, 1)),
			"05:06:07.089 ~ deployment shop/web  no difference but the version: 5 → 6"},
		{"deployment", view.Change{At: at, Of: deployment, Event: tidings.Added, New: replicas("5", 3, 2, 1)},
			"05:06:07.089 + deployment shop/web  2/3 ready"},
		{"terminal commands in a value", updated(widgets, object(widgets, "shop", "x", "1", map[string]any{"spec": map[string]any{"note": "a"}}), hostile),
			`05:06:07.089 ~ widget     shop/x  spec.note a → "a\x1b[2Jb\nc\u202e"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			lines := view.NewLines(view.LinesOptions{Types: []view.Type{pods, deployment, nodes}})
			if got := lines.Render(c.change); got != c.want+"\n" {
				t.Errorf("got  %q\nwant %q", got, c.want+"\n")
			}
		})
	}
}

func TestPathsOfLines(t *testing.T) {
	conditions := func(status string) map[string]any {
		return map[string]any{"conditions": []any{
			map[string]any{"type": "Ready", "status": status}, map[string]any{"type": "Healthy", "status": status},
		}}
	}
	for _, c := range []struct {
		name     string
		old, now map[string]any
		want     string
	}{
		{"fields of one parent", map[string]any{"a": int64(1), "b": int64(1), "c": int64(1)}, map[string]any{"a": int64(2), "b": int64(2), "c": int64(3)}, "status.{a,b} 1 → 2  status.c 1 → 3"},
		{"many fields of one parent", map[string]any{"a": int64(1), "b": int64(1), "c": int64(1), "d": int64(1), "e": int64(1)}, map[string]any{"a": int64(2), "b": int64(2), "c": int64(2), "d": int64(2), "e": int64(2)}, "status.{a,b,c,+2} 1 → 2"},
		{"a field of several elements", conditions("True"), conditions("False"), `status.conditions[*].status True → False`},
		{"an element", map[string]any{"list": []any{map[string]any{"name": "x", "a": int64(1)}}}, map[string]any{"list": []any{map[string]any{"name": "x", "a": int64(2)}}}, "status.list[x].a 1 → 2"},
		{"keys with dots", map[string]any{"a.b": int64(1), "c.d": int64(1)}, map[string]any{"a.b": int64(2), "c.d": int64(2)}, `status["a.b"] 1 → 2  status["c.d"] 1 → 2`},
	} {
		of := func(version string, status map[string]any) *unstructured.Unstructured {
			return object(widgets, "", "w", version, map[string]any{"status": status})
		}
		got := view.NewLines(view.LinesOptions{}).Render(updated(widgets, of("1", c.old), of("2", c.now)))
		if want := "05:06:07.089 ~ widget w  " + c.want + "\n"; got != want {
			t.Errorf("%s: got  %q\nwant %q", c.name, got, want)
		}
	}
}

func TestValuesOfLines(t *testing.T) {
	for _, c := range []struct {
		old, now any
		want     string
	}{
		{"info", "debug", "spec.x info → debug"},
		{"30s", "45s", "spec.x 30s → 45s"},
		{"1", "2", `spec.x "1" → "2"`},
		{"true", "false", `spec.x "true" → "false"`},
		{true, false, "spec.x true → false"},
		{"", " a ", `spec.x "" → " a "`},
		{"two\nlines", "", `spec.x "two\nlines" → ""`},
		{strings.Repeat("a", 50), "b", "spec.x " + strings.Repeat("a", 39) + "… → b"},
		{"registry.example/payments/checkout-worker:1.4.0", "registry.example/payments/checkout-worker:1.4.1", "spec.x …:1.4.0 → …:1.4.1"},
		{strings.Repeat("ä", 50) + "x", strings.Repeat("ä", 50) + "y", "spec.x …" + strings.Repeat("ä", 5) + "x\" → …" + strings.Repeat("ä", 5) + "y\""},
		{"registry.example/shop/cart-api:1.4.0", "registry.example/shop/cart-api:1.4.1", "spec.x …:1.4.0 → …:1.4.1"},
		{"10.1.2.3", "10.1.2.4", "spec.x 10.1.2.3 → 10.1.2.4"},
		{"2026-03-04T23:59:59Z", "2026-03-05T00:00:09Z", "spec.x 2026-03-04T23:59:59Z → 2026-03-05T00:00:09Z"},
		{[]any{strings.Repeat("a", 30), "b"}, []any{strings.Repeat("a", 30), "c"}, "spec.x[1] b → c"},
		{[]any{"a"}, nil, `spec.x ["a"] → null`},
		{map[string]any{"name": "a"}, "a", `spec.x {"name":"a"} → a`},
	} {
		spec := func(version string, x any) *unstructured.Unstructured {
			return object(widgets, "", "w", version, map[string]any{"spec": map[string]any{"x": x}})
		}
		got := view.NewLines(view.LinesOptions{}).Render(updated(widgets, spec("1", c.old), spec("2", c.now)))
		if want := "05:06:07.089 ~ widget w  " + c.want + "\n"; got != want {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	}
	none := object(widgets, "", "w", "1", map[string]any{"spec": map[string]any{}})
	some := object(widgets, "", "w", "2", map[string]any{"spec": map[string]any{"x": int64(1)}})
	if got := view.NewLines(view.LinesOptions{}).Render(updated(widgets, none, some)); !strings.Contains(got, "spec.x (none) → 1") {
		t.Errorf("added: %q", got)
	}
	if got := view.NewLines(view.LinesOptions{}).Render(updated(widgets, some, none)); !strings.Contains(got, "spec.x 1 → (none)") {
		t.Errorf("removed: %q", got)
	}
}

func TestTextsOfSeveralLinesAreComparedByLine(t *testing.T) {
	const file = "server:\n  log: info\n  port: 80\n"
	for _, c := range []struct {
		old, now, want string
	}{
		{file, "server:\n  log: debug\n  port: 80\n", `spec.x:2 log: info → log: debug`},
		{file, "server:\n  port: 80\n", `spec.x:2 log: info → (none)`},
		{file, file + "tls: on\n", `spec.x:4 (none) → tls: on`},
		{file, "server:\n  log: debug\n  port: 90\n", `spec.x:2 log: info +1 line → log: debug +1 line`},
		{file, file + "\n", "spec.x:4 (none) → an empty line"},
		{file, "none of it", `spec.x "server:\n  log: info\n  port: 80\n" → none of it`},
		{"a: 1\n  b: 2\n", "a: 1\nb: 2\n", `spec.x:2 "  b: 2" → b: 2`},
	} {
		spec := func(version, x string) *unstructured.Unstructured {
			return object(widgets, "", "w", version, map[string]any{"spec": map[string]any{"x": x}})
		}
		got := view.NewLines(view.LinesOptions{}).Render(updated(widgets, spec("1", c.old), spec("2", c.now)))
		if want := "05:06:07.089 ~ widget w  " + c.want + "\n"; got != want {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	}
}

func TestWhatKubectlKeepsOfAnApplyIsNotShownBesideIt(t *testing.T) {
	applied := func(version string, size int64, config string) *unstructured.Unstructured {
		u := object(widgets, "", "w", version, map[string]any{"spec": map[string]any{"size": size}})
		u.SetAnnotations(map[string]string{"kubectl.kubernetes.io/last-applied-configuration": config})
		return u
	}
	got := view.NewLines(view.LinesOptions{}).Render(updated(widgets, applied("1", 1, `{"spec":{"size":1}}`), applied("2", 2, `{"spec":{"size":2}}`)))
	if want := "05:06:07.089 ~ widget w  spec.size 1 → 2\n"; got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestLinesNameTheContextWhereThereAreSeveral(t *testing.T) {
	here, there := pods, pods
	here.Context, there.Context = "prod", "arn:aws:eks:eu-west-1:123456789012:cluster/staging"
	lines := view.NewLines(view.LinesOptions{Types: []view.Type{here, there}})
	for of, want := range map[view.Type]string{
		here:  "05:06:07.089 + prod                     pod shop/web-1  Running 1/1 on node-03, 2 restarts\n",
		there: "05:06:07.089 + arn:aws:eks:…ter/staging pod shop/web-1  Running 1/1 on node-03, 2 restarts\n",
	} {
		if got := lines.Render(view.Change{At: at, Of: of, Event: tidings.Added, New: runningPod("web-1")}); got != want {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	}
}

func TestEventsNameTheContextWhereThereAreSeveral(t *testing.T) {
	of := widgets
	of.Context = "prod"
	for format, want := range map[string]string{
		"json": `{"context":"prod","type":"ADDED","object":{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"creationTimestamp":"2026-03-04T02:06:07Z","name":"w","resourceVersion":"1","uid":"uid-w"}}}` + "\n",
		"yaml": "context: prod\nobject:\n  apiVersion: example.com/v1\n  kind: Widget\n  metadata:\n    creationTimestamp: \"2026-03-04T02:06:07Z\"\n    name: w\n    resourceVersion: \"1\"\n    uid: uid-w\ntype: ADDED\n",
	} {
		documents := view.NewDocuments(format, true)
		got, err := documents.Render(view.Change{At: at, Of: of, Event: tidings.Added, New: object(of, "", "w", "1", nil)})
		if err != nil || got != want {
			t.Errorf("%v, got\n%s\nwant\n%s", err, got, want)
		}
	}
}

func TestLineOfAnotherObjectUnderTheName(t *testing.T) {
	now := runningPod("web-1")
	now.SetUID("uid-other")
	got := view.NewLines(view.LinesOptions{}).Render(updated(pods, runningPod("web-1"), now))
	if !strings.Contains(got, "another object has this name now: uid uid-web-1 → uid-other") {
		t.Errorf("got %q", got)
	}
}

func TestLineOfTypedObjects(t *testing.T) {
	old := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-1", ResourceVersion: "1"}, Status: corev1.PodStatus{Phase: corev1.PodPending}}
	now := old.DeepCopy()
	now.ResourceVersion, now.Status.Phase, now.Spec.NodeName = "2", corev1.PodRunning, "node-03"
	lines := view.NewLines(view.LinesOptions{})
	got := lines.Render(updated(pods, old, now))
	if want := `05:06:07.089 ~ pod shop/web-1  spec.nodeName (none) → node-03  status.phase Pending → Running` + "\n"; got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	got = lines.Render(view.Change{At: at, Of: pods, Event: tidings.Added, New: now})
	if want := "05:06:07.089 + pod shop/web-1  Running on node-03\n"; got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestLinesFitTheScreen(t *testing.T) {
	many := func(version string, value int64) *unstructured.Unstructured {
		spec := map[string]any{}
		for i, field := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"} {
			spec["field-"+field] = value + int64(i)
		}
		return object(widgets, "shop", "x", version, map[string]any{"spec": spec})
	}
	for _, width := range []int{20, 40, 60, 80, 120, 400} {
		lines := view.NewLines(view.LinesOptions{Width: func() int { return width }})
		got := strings.TrimSuffix(lines.Render(updated(widgets, many("1", 1), many("2", 2))), "\n")
		for line := range strings.Lines(got) {
			if n := len([]rune(strings.TrimSpace(line))); n > width {
				t.Errorf("a line of %d characters on a screen of %d: %q", n, width, got)
			}
		}
		if width >= 60 && width <= 120 && !strings.Contains(got, "  +") {
			t.Errorf("width %d: the line does not say that there is more: %q", width, got)
		}
	}
	got := view.NewLines(view.LinesOptions{}).Render(updated(widgets, many("1", 1), many("2", 2)))
	if !strings.HasSuffix(got, "+4 more\n") {
		t.Errorf("without a width: %q", got)
	}
}

func TestLinesOnANarrowScreen(t *testing.T) {
	lines := view.NewLines(view.LinesOptions{Width: func() int { return 80 }, Types: []view.Type{pods, deployment}})
	for _, c := range []struct {
		change view.Change
		want   string
	}{
		{updated(deployment, replicas("5", 3, 3, 1), replicas("6", 5, 4, 2)), "05:06:07 ~ deployment shop/web\n    spec.replicas 3 → 5  status.readyReplicas 3 → 4"},
		{view.Change{At: at, Of: pods, Event: tidings.Added, New: runningPod("checkout-worker-5b24pds7np-k4zmd")}, "05:06:07 + pod        shop/checkout…pds7np-k4zmd  Running 1/1 on node-03, 2 res…"},
		{view.Change{At: at, Of: deployment, Event: tidings.Deleted, Old: replicas("5", 3, 2, 1)}, "05:06:07 - deployment shop/web                    2/3 ready, lived 3h"},
		{view.Change{At: at, Of: deployment, Event: tidings.Deleted, Tombstone: true, Old: replicas("5", 3, 2, 1)}, "05:06:07 - deployment shop/web                    2/3 ready, lived 3h"},
		{updated(widgets,
			object(widgets, "shop", "x", "1", map[string]any{"status": map[string]any{"availableThings": int64(1), "readyThings": int64(1), "updatedThings": int64(1)}}),
			object(widgets, "shop", "x", "2", map[string]any{"status": map[string]any{"availableThings": int64(2), "readyThings": int64(2), "updatedThings": int64(2)}})),
			"05:06:07 ~ widget     shop/x\n    status.{availableThings,readyThings,updatedThings} 1 → 2"},
		{updated(widgets,
			object(widgets, "shop", "x", "1", map[string]any{"spec": map[string]any{"deeply": map[string]any{"nestedAndVeryLongName": int64(1)}}}),
			object(widgets, "shop", "x", "2", map[string]any{"spec": map[string]any{"deeply": map[string]any{"nestedAndVeryLongName": int64(2)}}})),
			"05:06:07 ~ widget     shop/x\n    spec.deeply.nestedAndVeryLongName 1 → 2"},
	} {
		if got := lines.Render(c.change); got != c.want+"\n" {
			t.Errorf("got  %q\nwant %q", got, c.want+"\n")
		}
	}
}

func TestValuesStayWholeOnANarrowScreen(t *testing.T) {
	lines := view.NewLines(view.LinesOptions{Width: func() int { return 34 }, Types: []view.Type{pods, deployment}})
	spec := func(version, field, value string) *unstructured.Unstructured {
		return object(widgets, "shop", "checkout-worker-5b24pds7np-k4zmd", version, map[string]any{
			"spec": map[string]any{"template": map[string]any{"containers": []any{map[string]any{"name": "worker", field: value}}}},
		})
	}
	for _, c := range []struct{ field, old, now, want string }{
		{"image", "registry.example/shop/worker:1.4.0", "registry.example/shop/worker:1.4.1", "…rker].image …:1.4.0 → …:1.4.1"},
		{"image", "Terminating", "ContainerCreating", "…r].image Termina… → Contain…"},
		{"image", strings.Repeat("a", 30), strings.Repeat("b", 30), "…r].image aaaaaaa… → bbbbbbb…"},
		{"terminationMessage", "Running", "Stopped", "…tionMessage Running → Stopped"},
	} {
		got := lines.Render(updated(widgets, spec("1", c.field, c.old), spec("2", c.field, c.now)))
		if want := "05:06:07 ~ widget     shop/c…k4zmd\n    " + c.want + "\n"; got != want {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	}
}

func TestNothingInAnObjectReachesTheTerminalAsACommand(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		hostile := func(label string) string { return rapid.String().Draw(t, label) }
		width := rapid.IntRange(1, 200).Draw(t, "width")
		old := object(pods, "shop", "x"+hostile("name"), "1", map[string]any{"spec": map[string]any{hostile("field"): hostile("old")}})
		now := object(pods, "shop", old.GetName(), "2", map[string]any{
			"spec":   map[string]any{hostile("field"): hostile("new"), "nodeName": hostile("node")},
			"status": map[string]any{"phase": hostile("phase")},
		})
		lines := view.NewLines(view.LinesOptions{Width: func() int { return width }})
		for _, change := range []view.Change{updated(pods, old, now), {At: at, Of: pods, Event: tidings.Added, New: now}, {At: at, Of: pods, Event: tidings.Deleted, Old: now}} {
			for line := range strings.Lines(lines.Render(change)) {
				line, ended := strings.CutSuffix(line, "\n")
				if !ended || strings.ContainsFunc(line, unicode.IsControl) {
					t.Errorf("%q", line)
				}
				if n := ansi.StringWidth(line); n > width {
					t.Errorf("%d columns on a screen of %d: %q", n, width, line)
				}
			}
		}
	})
}

func TestColoursChangeNothingElse(t *testing.T) {
	change := updated(deployment, replicas("5", 3, 3, 1), replicas("6", 5, 4, 2))
	plain := view.NewLines(view.LinesOptions{}).Render(change)
	coloured := view.NewLines(view.LinesOptions{Palette: view.Palette{Colours: true}}).Render(change)
	if coloured == plain {
		t.Error("no colours")
	}
	if got := ansi.Strip(coloured); got != plain {
		t.Errorf("without its colours the line is %q, want %q", got, plain)
	}
}
