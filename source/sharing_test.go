package source

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"unsafe"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/types"
	clientscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/tidings-go/tidings/internal/decode/dedup"
	"github.com/tidings-go/tidings/internal/engine/tape"
)

// replica returns a pod that has its containers and labels in common with all others.
func replica(name, version string) *corev1.Pod {
	p := pod(name, version)
	p.UID = types.UID("uid-of-" + name)
	p.Labels = map[string]string{"app": "web", "tier": "front"}
	p.Spec.Containers = []corev1.Container{{Name: "app", Image: "example.com/app:v1", Args: []string{"--verbose"}}}
	return p
}

// inCommon reports which parts two pods have in common in memory.
func inCommon(a, b *corev1.Pod) (containers, labels, image bool) {
	return &a.Spec.Containers[0] == &b.Spec.Containers[0],
		reflect.ValueOf(a.Labels).UnsafePointer() == reflect.ValueOf(b.Labels).UnsafePointer(),
		unsafe.StringData(a.Spec.Containers[0].Image) == unsafe.StringData(b.Spec.Containers[0].Image)
}

// replicas answers a list with eight pods, and a watch with as many that are added and
// one that is modified.
func replicas(t *testing.T) http.HandlerFunc {
	list := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "9"}}
	var events strings.Builder
	for i := range 8 {
		p := replica(fmt.Sprint("pod-", i), "3")
		list.Items = append(list.Items, *p)
		events.WriteString(watchFrame(t, "ADDED", envelopeOf(t, "v1", "Pod", p)))
	}
	events.WriteString(watchFrame(t, "MODIFIED", envelopeOf(t, "v1", "Pod", replica("pod-1", "4"))))
	body := string(envelopeOf(t, "v1", "PodList", list))
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("watch") == "true" {
			answerWith(200, protobufType+";stream=watch", events.String())(w, r)
		} else {
			answerWith(200, protobufType, body)(w, r)
		}
	}
}

// readAll lists and watches, and returns the objects of both.
func readAll[T Object](t *testing.T, s *REST[T]) (all []T) {
	t.Helper()
	page, err := s.List(t.Context(), ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, item := range page.Items {
		all = append(all, item.Object)
	}
	events, _ := readAllEvents(t, s, WatchOptions{Version: "1"})
	for _, event := range events {
		all = append(all, event.Object)
	}
	return all
}

// TestObjectsShareWhatTheyHaveInCommon reads a list and a watch with each kind of
// sharing. Another source of the client shares with the first.
func TestObjectsShareWhatTheyHaveInCommon(t *testing.T) {
	for sharing, want := range map[Sharing]struct {
		values, strings bool
		stats           DecodingStats
	}{
		ShareAll:     {true, true, DecodingStats{Shared: 17}},
		ShareStrings: {false, true, DecodingStats{Shared: 17}},
		ShareNothing: {false, false, DecodingStats{Unshared: 17}},
	} {
		t.Run(fmt.Sprint(sharing), func(t *testing.T) {
			client := serve(t, replicas(t))
			first := NewTyped(client, pods, newPod, RESTOptions{Transport: Transport{Sharing: sharing}})
			all := readAll(t, first)
			again := readAll(t, NewTyped(client, pods, newPod, RESTOptions{Transport: Transport{Sharing: sharing}}))
			apart := readAll(t, NewTyped(client, pods, newPod, RESTOptions{Transport: Transport{Sharing: sharing, Table: new(dedup.Table)}}))
			if len(all) != 17 {
				t.Fatalf("read %d pods", len(all))
			}
			for i, pair := range [][2]*corev1.Pod{{all[6], all[7]}, {all[7], all[15]}, {all[15], all[16]}, {all[16], again[3]}} {
				containers, labels, image := inCommon(pair[0], pair[1])
				if containers != want.values || labels != want.values || image != want.strings {
					t.Errorf("pair %d: in common are containers: %v, labels: %v, image: %v", i, containers, labels, image)
				}
			}
			if containers, labels, image := inCommon(all[16], apart[16]); containers || labels || image {
				t.Error("pods that were given another table share with the others")
			}
			if all[8].Kind != "" || all[0].Kind != "" {
				t.Error("a typed object has a kind, as it has not with client-go")
			}
			stats := first.DecodingStats()
			if (stats.WhyUnshared != nil) != (sharing == ShareNothing) {
				t.Errorf("why it is unshared: %v", stats.WhyUnshared)
			}
			if stats.WhyUnshared = nil; stats != want.stats {
				t.Errorf("counted %+v, want %+v", stats, want.stats)
			}
			if kept := client.SharingStats(Transport{}).Kept; (kept > 0) != want.strings {
				t.Errorf("the client's table kept %d", kept)
			}
		})
	}
}

// TestStructsInJSONShareWhatTheyHaveInCommon decodes pods as custom types are, which have no
// protobuf.
func TestStructsInJSONShareWhatTheyHaveInCommon(t *testing.T) {
	var items []string
	for i := range 8 {
		raw, err := json.Marshal(replica(fmt.Sprint("pod-", i), "3"))
		if err != nil {
			t.Fatal(err)
		}
		items = append(items, string(raw))
	}
	body := `{"kind":"PodList","apiVersion":"v1","items":[` + strings.Join(items, ",") + `]}`
	for sharing, want := range map[Sharing]bool{ShareAll: true, ShareStrings: false, ShareNothing: false} {
		s := NewTyped(serve(t, answerWith(200, jsonType, body)), pods, newPod, RESTOptions{Transport: Transport{Sharing: sharing}})
		page, err := s.List(t.Context(), ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		containers, labels, image := inCommon(page.Items[6].Object, page.Items[7].Object)
		if containers != want || labels != want || image != (sharing != ShareNothing) {
			t.Errorf("%v: in common are containers: %v, labels: %v, image: %v", sharing, containers, labels, image)
		}
		stats := s.DecodingStats()
		if shared := sharing != ShareNothing; stats.JSON != 8 || (stats.Shared == 8) != shared || (stats.Unshared == 8) == shared || stats.After.Shared != 0 {
			t.Errorf("%v: counted %+v", sharing, stats)
		}
	}
}

// TestWhatIsNotSharedIsCounted decodes Secrets, JSON, and an object in an encoding that no Go
// program writes. Stats of several sources add up, each figure of them.
func TestDecodingStatsAddUp(t *testing.T) {
	one := DecodingStats{Shared: 1, Unshared: 2, Rejected: 3, JSON: 4, After: dedup.SharerStats{Shared: 5}, WhyUnshared: ErrMalformed}
	var sum DecodingStats
	sum.Add(one)
	sum.Add(one)
	want := DecodingStats{Shared: 2, Unshared: 4, Rejected: 6, JSON: 8, After: dedup.SharerStats{Shared: 10}, WhyUnshared: ErrMalformed}
	if sum != want {
		t.Errorf("got %+v, want %+v", sum, want)
	}
}

func TestWhatIsNotSharedIsCounted(t *testing.T) {
	secrets := Resource{Version: "v1", Name: "secrets", Kind: "Secret", Scope: ScopeNamespaced}
	list := &corev1.SecretList{Items: []corev1.Secret{{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "default"}}}}
	client := serve(t, answerWith(200, protobufType, string(envelopeOf(t, "v1", "SecretList", list))))
	s := NewTyped(client, secrets, func() *corev1.Secret { return new(corev1.Secret) }, RESTOptions{})
	if _, err := s.List(t.Context(), ListOptions{}); err != nil {
		t.Fatal(err)
	}
	if stats := s.DecodingStats(); stats.Unshared != 1 || stats.WhyUnshared == nil || client.SharingStats(Transport{}).Kept != 0 {
		t.Errorf("a Secret: %+v, in the table %+v", stats, client.SharingStats(Transport{}))
	}

	partial := &metav1.PartialObjectMetadataList{Items: []metav1.PartialObjectMetadata{{ObjectMeta: metav1.ObjectMeta{Name: "a", Annotations: map[string]string{"a": "b"}}}}}
	client = serve(t, answerWith(200, protobufType, string(envelopeOf(t, "meta.k8s.io/v1", "PartialObjectMetadataList", partial))))
	metadata := NewMetadata(client, secrets, RESTOptions{})
	if _, err := metadata.List(t.Context(), ListOptions{}); err != nil {
		t.Fatal(err)
	}
	if stats := metadata.DecodingStats(); stats.Unshared != 1 || stats.WhyUnshared == nil || client.SharingStats(Transport{}).Kept != 0 {
		t.Errorf("the metadata of a Secret: %+v, in the table %+v", stats, client.SharingStats(Transport{}))
	}

	// Field 1, the metadata, twice: they merge.
	twice := &runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "v1", Kind: "Pod"}, Raw: []byte("\n\x03\n\x01a\n\x09\x1a\x07default")}
	raw, err := twice.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	typed := NewTyped(serve(t, answerWith(200, protobufType+";stream=watch", watchFrame(t, "ADDED", append([]byte("k8s\x00"), raw...)))), pods, newPod, RESTOptions{})
	if all, _ := readAllEvents(t, typed, WatchOptions{}); len(all) != 1 || all[0].Key != "default/a" {
		t.Errorf("read %+v", all)
	}
	if stats := typed.DecodingStats(); stats.Unshared != 1 || stats.Shared != 0 || stats.WhyUnshared != nil {
		t.Errorf("an unusual encoding: %+v", stats)
	}

	inJSON := NewTyped(serve(t, answerWith(200, jsonType, jsonFrame("ADDED", podJSON("a", "3")))), pods, newPod, RESTOptions{})
	dynamic := NewDynamic(serve(t, answerWith(200, jsonType, jsonFrame("ADDED", podJSON("a", "3")))), pods, RESTOptions{})
	_, _ = readAllEvents(t, inJSON, WatchOptions{})
	_, _ = readAllEvents(t, dynamic, WatchOptions{})
	if stats := inJSON.DecodingStats(); stats != (DecodingStats{Shared: 1, JSON: 1}) {
		t.Errorf("a struct in JSON: %+v", stats)
	}
	if stats := dynamic.DecodingStats(); stats != (DecodingStats{Shared: 1}) {
		t.Errorf("an object in JSON: %+v", stats)
	}
}

// FuzzEnvelope decodes the object of a watch event, and compares with the
// serializer that client-go uses, before it clears the kind: verdict and value are the
// same, but for objects of other kinds, of which the source says that they are.
func FuzzEnvelope(f *testing.F) {
	reference := protobuf.NewSerializer(clientscheme.Scheme, clientscheme.Scheme)
	object, err := replica("a", "3").Marshal()
	if err != nil {
		f.Fatal(err)
	}
	for _, unknown := range []runtime.Unknown{
		{TypeMeta: runtime.TypeMeta{APIVersion: "v1", Kind: "Pod"}, Raw: object},
		{TypeMeta: runtime.TypeMeta{APIVersion: "v1", Kind: "Pod"}},
		{TypeMeta: runtime.TypeMeta{APIVersion: "v1", Kind: "Pod"}, Raw: object, ContentType: "application/json"},
		{TypeMeta: runtime.TypeMeta{APIVersion: "v1", Kind: "Node"}, Raw: object},
		{TypeMeta: runtime.TypeMeta{APIVersion: "a/b/c", Kind: "Pod"}, Raw: object},
		{Raw: object},
	} {
		raw, err := unknown.Marshal()
		if err != nil {
			f.Fatal(err)
		}
		whole := append([]byte("k8s\x00"), raw...)
		f.Add(whole)
		f.Add(append(bytes.Clone(whole), raw...))       // everything twice
		f.Add(append(bytes.Clone(whole), 2<<3, 1))      // the object as a number
		f.Add(append(bytes.Clone(whole), 9<<3|2, 1, 1)) // an unknown field
		f.Add(whole[:len(whole)-1])
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		stream := &restStream[*corev1.Pod]{
			decoder: newTypedDecoder(corev1.SchemeGroupVersion.WithKind("Pod"), newPod, new(dedup.Table), ShareAll),
			form:    tape.Protobuf, apiVersion: "v1", kind: "Pod",
		}
		for range 3 { // until everything is shared
			got, gotErr := decodeObject(stream, stream.decoder, bytes.Clone(data))
			want, gvk, wantErr := reference.Decode(data, nil, nil)
			if _, wrong := errors.AsType[*WrongObjectError](gotErr); wrong {
				if wantErr == nil && *gvk == corev1.SchemeGroupVersion.WithKind("Pod") {
					t.Fatalf("%v of an object that client-go takes for a pod", gotErr)
				}
				return
			}
			if (gotErr == nil) != (wantErr == nil) {
				t.Fatalf("%x: %v, client-go says %v", data, gotErr, wantErr)
			}
			if gotErr != nil {
				return
			}
			want.GetObjectKind().SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(""))
			want.(*corev1.Pod).TypeMeta = metav1.TypeMeta{}
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("%x:\ngot  %+v\nwant %+v", data, got, want)
			}
		}
	})
}

// FuzzListBody decodes the body of a list, however it arrives, and compares with the serializer
// that client-go uses: verdict, versions and objects are the same, except for lists of other
// kinds, which have an error of their own, and lists that come twice.
func FuzzListBody(f *testing.F) {
	reference := protobuf.NewSerializer(clientscheme.Scheme, clientscheme.Scheme)
	object := podList(f, 3)
	for _, content := range []string{
		object, "",
		object + object,             // everything twice
		object + "\n\x03\x12\x0110", // the metadata again, with another version, and trash
		object + "\x10\x01",         // an item as a number
		object + "\n\x02\x20\x05",   // how many remain, again
		object + "\x4a\x01\x01",     // an unknown field
		object[:len(object)-1],
	} {
		f.Add([]byte(listOf(f, content)))
	}
	for _, body := range bodies(f) {
		f.Add([]byte(body))
	}
	source := NewTyped(nil, pods, newPod, RESTOptions{})
	f.Fuzz(func(t *testing.T, body []byte) {
		want := &corev1.PodList{}
		_, gvk, wantErr := reference.Decode(body, nil, want)
		compare := func(how string, got Page[*corev1.Pod], gotErr error) {
			if _, wrong := errors.AsType[*WrongObjectError](gotErr); wrong {
				e, err := openEnvelope(body)
				if wantErr == nil && err == nil && len(e.kind) > 0 && gvk.Kind == "PodList" && gvk.Version == "v1" {
					t.Fatalf("%s: %v of a list that client-go takes for one of pods", how, gotErr)
				}
				return
			}
			if checkVerdict(t, gotErr); (gotErr == nil) != (wantErr == nil) {
				t.Fatalf("%s: %x: %v, client-go says %v", how, body, gotErr, wantErr)
			}
			if gotErr != nil {
				return
			}
			remaining := int64(0)
			if want.RemainingItemCount != nil {
				remaining = *want.RemainingItemCount
			}
			if got.Version != want.ResourceVersion || got.Continue != want.Continue ||
				got.Remaining != remaining || len(got.Items) != len(want.Items) {
				t.Fatalf("%s: %x:\ngot  %+v\nwant %+v", how, body, got, want)
			}
			for i := range got.Items {
				if !reflect.DeepEqual(got.Items[i].Object, &want.Items[i]) && got.Items[i].Err == nil {
					t.Fatalf("%x: item %d:\ngot  %+v\nwant %+v", body, i, got.Items[i].Object, want.Items[i])
				}
			}
		}
		for how, reader := range readers {
			page, err := source.readProtobufPage(source.pageReader(t.Context(), reader(bytes.NewReader(body)), nil), nil)
			if err == nil || wantErr != nil || !comesAgain(body) {
				compare(how, page, err)
			}
		}
	})
}
