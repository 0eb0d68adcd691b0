package apisim

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"
)

// TestRulesOfTypes makes, updates and deletes an object of some types whose rules
// differ.
func TestRulesOfTypes(t *testing.T) {
	tests := []struct {
		version, kind, path string // of the API, and its collection
		makes               bool   // an update creates a missing object
		needsVersion        bool   // an update must name the version
		returned            bool   // a delete answers with the object
		counts              bool   // it has generations
	}{
		{"v1", "ConfigMap", "/api/v1/namespaces/default/configmaps", false, false, false, false},
		{"v1", "Endpoints", "/api/v1/namespaces/default/endpoints", true, false, false, false},
		{"v1", "Service", "/api/v1/namespaces/default/services", true, false, true, false},
		{"v1", "LimitRange", "/api/v1/namespaces/default/limitranges", true, false, false, false},
		{"v1", "PodTemplate", "/api/v1/namespaces/default/podtemplates", true, false, true, true},
		{"v1", "ServiceAccount", "/api/v1/namespaces/default/serviceaccounts", false, false, true, false},
		{"v1", "PersistentVolume", "/api/v1/persistentvolumes", false, false, true, false},
		{"v1", "PersistentVolumeClaim", "/api/v1/namespaces/default/persistentvolumeclaims", false, false, true, false},
		{"events.k8s.io/v1", "Event", "/apis/events.k8s.io/v1/namespaces/default/events", true, false, false, false},
		{"coordination.k8s.io/v1", "Lease", "/apis/coordination.k8s.io/v1/namespaces/default/leases", true, true, false, false},
		{"rbac.authorization.k8s.io/v1", "Role", "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles", true, false, false, false},
		{"policy/v1", "PodDisruptionBudget", "/apis/policy/v1/namespaces/default/poddisruptionbudgets", false, true, false, true},
		{"storage.k8s.io/v1", "StorageClass", "/apis/storage.k8s.io/v1/storageclasses", false, false, true, false},
		{"storage.k8s.io/v1", "CSINode", "/apis/storage.k8s.io/v1/csinodes", false, true, true, false},
		{"storage.k8s.io/v1", "CSIStorageCapacity", "/apis/storage.k8s.io/v1/namespaces/default/csistoragecapacities", false, false, false, false},
		{"resource.k8s.io/v1", "ResourceClaim", "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims", false, false, true, false},
		{"networking.k8s.io/v1", "Ingress", "/apis/networking.k8s.io/v1/namespaces/default/ingresses", false, false, false, true},
		{"networking.k8s.io/v1", "IPAddress", "/apis/networking.k8s.io/v1/ipaddresses", false, false, false, false},
		{"apps/v1", "ControllerRevision", "/apis/apps/v1/namespaces/default/controllerrevisions", false, false, false, false},
	}
	for _, test := range tests {
		t.Run(test.kind, func(t *testing.T) {
			inBubble(t, Options{}, func(b *bench) {
				body := fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"name":"a"}}`, test.version, test.kind)
				code, text := b.get("PUT", test.path+"/a", body)
				if test.makes != (code == 201) || !test.makes && code != 404 {
					b.Errorf("an update of what is missing: %d %s", code, text)
				}
				if !test.makes {
					code, text = b.get("POST", test.path, body)
				}
				if code != 201 || test.counts != strings.Contains(text, `"generation":1`) {
					b.Errorf("made %d %s", code, text)
				}
				if code, text = b.get("PUT", test.path+"/a", body); test.needsVersion != (code == 422) || !test.needsVersion && code != 200 {
					b.Errorf("an update of no version: %d %s", code, text)
				}
				if code, text = b.get("DELETE", test.path+"/a", ""); code != 200 || test.returned == strings.Contains(text, `"kind":"Status"`) {
					b.Errorf("deleted %d %s", code, text)
				}
			})
		})
	}
}

func TestRulesOfNames(t *testing.T) {
	const named = `{"kind":%q,"metadata":{"name":%q}}`
	inBubble(t, Options{}, func(b *bench) {
		b.ask("",
			ask{"POST " + mapsPath, fmt.Sprintf(named, "ConfigMap", "a.b"), 201, ""},
			ask{"POST " + mapsPath, fmt.Sprintf(named, "ConfigMap", "a:b"), 422, ""},
			ask{"POST /api/v1/namespaces/default/services", fmt.Sprintf(named, "Service", "a.b"), 422, ""},
			ask{"POST /api/v1/namespaces", fmt.Sprintf(named, "Namespace", "a.b"), 422, ""},
			ask{"POST " + rolesPath, fmt.Sprintf(named, "ClusterRole", "system:a"), 201, ""},
			ask{"POST " + rolesPath, fmt.Sprintf(named, "ClusterRole", "a/b"), 422, ""},
			ask{"POST " + rolesPath, `{"metadata":{"generateName":"system:"}}`, 201, "system:"})
	})
}

const rolesPath = "/apis/rbac.authorization.k8s.io/v1/clusterroles"

func TestCellsOfCustomColumns(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		u := b.fromYAML("{spec: {text: a, number: 3, float: 2.5, flag: true, list: [1, 2], time: '1999-12-31T23:59:00Z', none: null}}")
		for _, test := range []struct {
			kind, path string
			want       any
		}{
			{"string", ".spec.text", "a"}, {"string", ".spec.number", "3"},
			{"string", ".spec.list", "[1,2]"}, {"string", ".spec.list[1]", "2"},
			{"integer", ".spec.number", int64(3)}, {"integer", ".spec.float", int64(2)},
			{"number", ".spec.float", 2.5}, {"boolean", ".spec.flag", true},
			{"date", ".spec.time", "60s"}, {"date", ".spec.text", "<invalid>"},
			{"string", ".spec.nosuch", nil}, {"string", ".spec.x[", nil}, {"integer", ".spec.none", nil},
		} {
			if got := (printerColumn{Type: test.kind, JSONPath: test.path}).cell(u); got != test.want {
				b.Errorf("%s of %s is %#v, want %#v", test.kind, test.path, got, test.want)
			}
		}
	})
}

func TestBookmarksInEveryForm(t *testing.T) {
	inBubble(t, Options{BookmarkInterval: time.Minute}, func(b *bench) {
		b.define()
		version := b.version()
		o := metav1.ListOptions{ResourceVersion: version, AllowWatchBookmarks: true}
		onlyMetadata, err := metadata.NewForConfig(config(b.server, ""))
		b.must(err)
		asMaps, err := b.dynamic().Resource(widgetsV1).Watch(b.ctx, o)
		b.must(err)
		asMetadata, err := onlyMetadata.Resource(widgetsV1).Watch(b.ctx, o)
		b.must(err)
		maps, meta := b.collect(asMaps), b.collect(asMetadata)
		time.Sleep(61 * time.Second)
		b.want("maps", maps(), "BOOKMARK @"+version)
		b.want("metadata", meta(), "BOOKMARK @"+version)
	})
}
