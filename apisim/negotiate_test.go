package apisim

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// The manager of fields and the label of the objects of the tests below: their bytes are the same in
// every encoding.
const theManager, theLabel = "the-manager", "the-label"

// haveManaged creates a config map and a custom object with managed fields, and returns a version
// from before.
func (b *bench) haveManaged() (version string) {
	b.Helper()
	b.must(b.server.Register(Resource{Group: "example.com", Version: "v1", Name: "widgets", Kind: "Widget", Namespaced: true}))
	before := b.create("before")
	widget := &unstructured.Unstructured{}
	widget.SetAPIVersion("example.com/v1")
	widget.SetKind("Widget")
	for _, obj := range []object{configMap("a"), widget} {
		obj.SetNamespace("default")
		obj.SetName("a")
		obj.SetLabels(map[string]string{theLabel: ""})
		obj.SetManagedFields([]metav1.ManagedFieldsEntry{{
			Manager: theManager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1",
			FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:data":{}}`),
		}})
		b.done(b.server.Create(b.ctx, obj))
	}
	return before.ResourceVersion
}

// TestDropManagedFields reads objects in every form with the parameter drop, with the feature and
// without it, and with values that the feature does not know.
func TestDropManagedFields(t *testing.T) {
	const partial, table = ";g=meta.k8s.io;v=v1;as=PartialObjectMetadata", ";g=meta.k8s.io;v=v1;as=Table"
	for _, on := range []bool{false, true} {
		t.Run(fmt.Sprint(on), func(t *testing.T) {
			inBubble(t, Options{ManagedFieldsOptOut: on}, func(b *bench) {
				before := b.haveManaged()
				const watch = "/%s?watch=1&timeoutSeconds=1"
				paths := map[string]string{ // with the end of the kind of their metadata
					"/namespaces/default/%s/a": "", "/%s": "List", watch + "&resourceVersion=" + before: "",
					watch + "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true": "",
				}
				// read returns the status, and whether the managed fields are in the answer.
				read := func(path, accept string) (int, bool) {
					code, text := b.get("GET", path, "", "Accept", accept)
					if code == 200 && !strings.Contains(text, theLabel) {
						b.Errorf("%s as %s has no object: %s", path, accept, text)
					}
					return code, strings.Contains(text, theManager)
				}
				for path, content := range paths {
					for resource, mediaTypes := range map[string][]string{
						"/api/v1 configmaps":           {mediaJSON, mediaProtobuf},
						"/apis/example.com/v1 widgets": {mediaJSON},
					} {
						root, name, _ := strings.Cut(resource, " ")
						path := root + fmt.Sprintf(path, name)
						accepts := []string{mediaJSON + table}
						for _, mediaType := range mediaTypes {
							accepts = append(accepts, mediaType, mediaType+partial+content)
						}
						for _, accept := range accepts {
							if code, has := read(path, accept); code != 200 || !has {
								b.Errorf("%s as %s: %d, managed fields %v", path, accept, code, has)
							}
							dropping := accept + ";drop=metadata.managedFields"
							if code, has := read(path, dropping); code != 200 || has == on {
								b.Errorf("%s as %s: %d, managed fields %v", path, dropping, code, has)
							}
							if code, has := read(path, accept+`;drop=""`); code != 200 || !has {
								b.Errorf("%s as %s with an empty value: %d, managed fields %v", path, accept, code, has)
							}
							for _, value := range []string{"metadata.labels", "metadata.managedFields+metadata.labels", "metadata.managedfields"} {
								want := 200
								if on {
									want = 406
								}
								if code, has := read(path, accept+";drop="+value); code != want || has == on {
									b.Errorf("%s as %s;drop=%s: %d, managed fields %v", path, accept, value, code, has)
								}
							}
						}
					}
				}
				if code, has := read("/api/v1/configmaps", mediaJSON+";drop=spec,"+mediaJSON); code != 200 || !has {
					b.Errorf("a second media type: %d, managed fields %v", code, has)
				}
				stored, err := b.server.Get(b.ctx, configMaps, "default", "a")
				b.must(err)
				if len(stored.(*corev1.ConfigMap).ManagedFields) != 1 {
					b.Error("the stored object has lost its managed fields")
				}
			})
		})
	}
}

// TestDropManagedFieldsOfWrites checks that the answer to a write has the form that it asks for.
func TestDropManagedFieldsOfWrites(t *testing.T) {
	inBubble(t, Options{ManagedFieldsOptOut: true}, func(b *bench) {
		b.haveManaged()
		const path, patch = "/api/v1/namespaces/default/configmaps/a", `{"data":{"a":"%d"}}`
		for n, drop := range []string{"", ";drop=metadata.managedFields"} {
			code, text := b.get("PATCH", path, fmt.Sprintf(patch, n), "Accept", mediaJSON+drop,
				"Content-Type", "application/merge-patch+json")
			if code != 200 || strings.Contains(text, `"managedFields"`) != (drop == "") {
				b.Errorf("%q: %d %s", drop, code, text)
			}
		}
	})
}

// TestRefusedMediaTypeParameters checks which media types are refused with parameters.
func TestRefusedMediaTypeParameters(t *testing.T) {
	for _, on := range []bool{false, true} {
		inBubble(t, Options{ManagedFieldsOptOut: on}, func(b *bench) {
			b.haveManaged()
			const drop = ";drop=metadata.managedFields"
			withDrop := 406
			if on {
				withDrop = 200
			}
			for accept, refused := range map[string]int{
				mediaJSON: 200, mediaJSON + ";q=0.5;pretty=1": 200, mediaProtobuf + ";stream=watch": 200,
				mediaProtobuf + ";g=meta.k8s.io;v=v1;as=PartialObjectMetadataList":        200,
				mediaProtobuf + ";g=meta.k8s.io;v=v1;as=PartialObjectMetadataList" + drop: withDrop,
				mediaJSON + drop: withDrop, mediaProtobuf + drop + "," + mediaJSON + drop: withDrop,
				mediaJSON + ";charset=utf-8": 406, mediaJSON + ";charset=utf-8," + mediaJSON: 200,
			} {
				for _, query := range []string{"", "?watch=1&timeoutSeconds=1"} {
					if query != "" && strings.Contains(accept, "MetadataList") {
						continue // no form of an event
					}
					for _, refuse := range []bool{false, true} {
						want := 200
						if refuse {
							want = refused
						}
						b.server.RefuseMediaTypeParameters(refuse)
						code, text := b.get("GET", "/api/v1/configmaps"+query, "", "Accept", accept)
						if code != want {
							b.Errorf("%v, refuse %v: %s: %d %q", on, refuse, accept, code, strings.ToValidUTF8(text, "?"))
						}
					}
				}
			}
		})
	}
}
