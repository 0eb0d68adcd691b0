package source

import (
	"net/http"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// heavy returns a pod that has fields to be left out, and lighter without them.
func heavy(name, version string) *corev1.Pod {
	p := replica(name, version)
	p.Annotations = map[string]string{"a": "b"}
	p.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "A", Value: "B"}}
	p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: "Memory"}}}}
	return p
}

var heavyDrop = []string{"metadata.annotations", "spec.containers.env", "spec.volumes.emptyDir.medium"}

func lighter(p *corev1.Pod) *corev1.Pod {
	p.Annotations, p.Spec.Containers[0].Env = nil, nil
	p.Spec.Volumes[0].EmptyDir.Medium = ""
	return p
}

// TestDropFromEveryEncoding lists and watches typed pods in JSON and in protobuf. The end
// of the initial events is known by an annotation, which is left out of the pods alone.
func TestDropFromEveryEncoding(t *testing.T) {
	end := pod("", "9")
	end.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	kind := func(p *corev1.Pod) *corev1.Pod {
		p.APIVersion, p.Kind = "v1", "Pod"
		return p
	}
	asJSON := func(event string, p *corev1.Pod) string {
		return jsonOf(t, map[string]any{"type": event, "object": kind(p)})
	}
	asProtobuf := func(event string, p *corev1.Pod) string { return watchFrame(t, event, envelopeOf(t, "v1", "Pod", p)) }
	list := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "9"}, Items: []corev1.Pod{*heavy("listed", "3")}}
	named := list.DeepCopy()
	named.APIVersion, named.Kind = "v1", "PodList"
	for name, as := range map[string]struct {
		mediaType, list string
		event           func(string, *corev1.Pod) string
		stats           DecodingStats
	}{
		"json":     {jsonType, jsonOf(t, named), asJSON, DecodingStats{Shared: 3, JSON: 3}},
		"protobuf": {protobufType, string(envelopeOf(t, "v1", "PodList", list)), asProtobuf, DecodingStats{Shared: 3}},
	} {
		t.Run(name, func(t *testing.T) {
			events := as.event("ADDED", heavy("watched", "4")) + as.event("DELETED", heavy("listed", "5")) + as.event("BOOKMARK", end)
			client := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Query().Get("watch") == "true" {
					answerWith(200, as.mediaType+";stream=watch", events)(w, r)
				} else {
					answerWith(200, as.mediaType, as.list)(w, r)
				}
			})
			s := NewTyped(client, pods, newPod, RESTOptions{Drop: heavyDrop})
			page, err := s.List(t.Context(), ListOptions{})
			if err != nil || len(page.Items) != 1 || !reflect.DeepEqual(page.Items[0].Object, lighter(heavy("listed", "3"))) {
				t.Fatalf("listed %+v, %v", page, err)
			}
			got, _ := readAllEvents(t, s, WatchOptions{SendInitialEvents: true})
			if len(got) != 3 || got[0].Type != Added || got[1].Type != Deleted || got[2].Type != InitialEventsEnd || got[2].Version != "9" {
				t.Fatalf("watched %+v", got)
			}
			if !reflect.DeepEqual(got[0].Object, lighter(heavy("watched", "4"))) || !reflect.DeepEqual(got[1].Object, lighter(heavy("listed", "5"))) {
				t.Errorf("watched %+v and %+v", got[0].Object, got[1].Object)
			}
			if stats := s.DecodingStats(); stats != as.stats {
				t.Errorf("counted %+v, want %+v", stats, as.stats)
			}
		})
	}
}

// TestDropThatIsRefused checks that every request fails if a path cannot be left out.
func TestDropThatIsRefused(t *testing.T) {
	asked := 0
	client := serve(t, func(http.ResponseWriter, *http.Request) { asked++ })
	for _, path := range []string{"spec.container.env", "metadata.name"} {
		refuses(t, NewTyped(client, pods, newPod, RESTOptions{Drop: []string{path}}), path)
	}
	refuses(t, NewMetadata(client, pods, RESTOptions{Drop: []string{"spec"}}), "spec")
	for _, path := range []string{"metadata.label", "spec..a"} {
		refuses(t, NewDynamic(client, pods, RESTOptions{Drop: []string{path}}), path)
	}
	if asked != 0 {
		t.Errorf("the server was asked %d times", asked)
	}
}

func refuses[T Object](t *testing.T, s *REST[T], path string) {
	t.Helper()
	_, err := s.List(t.Context(), ListOptions{})
	for _, err := range []error{err, openAndClose(s.Watch(t.Context(), WatchOptions{}))} {
		if err == nil || !strings.Contains(err.Error(), `"`+path+`"`) || !strings.Contains(err.Error(), "RESTOptions.Drop") {
			t.Errorf("%s: %v", path, err)
		}
	}
}
