package source

import (
	"bytes"
	"encoding/binary"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clientscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/tidings-go/tidings/internal/decode/wire"
)

// field returns a field of protobuf that is length-delimited and has a number below 16.
func field(number int, content string) string {
	head := binary.AppendUvarint([]byte{byte(number<<3 | wire.BytesType)}, uint64(len(content)))
	return string(head) + content
}

// metadataOf encodes names as ObjectMeta has them.
func metadataOf(name, namespace, uid, version string) string {
	return field(1, name) + field(2, "") + field(3, namespace) + field(4, "") + field(5, uid) + field(6, version)
}

// unusual are objects whose identity cannot be read with certainty, or that have none.
var unusual = map[string]string{
	"nothing":                               "",
	"no metadata":                           field(2, "spec"),
	"metadata is cut":                       field(1, metadataOf("a", "ns", "u", "5"))[:12],
	"metadata twice":                        field(1, metadataOf("a", "ns", "u", "5")) + field(1, metadataOf("b", "ns", "v", "6")),
	"metadata after the spec":               field(2, "") + field(1, metadataOf("a", "ns", "u", "5")),
	"metadata again at the end":             field(1, metadataOf("a", "ns", "u", "5")) + field(2, "") + field(1, field(1, "b")),
	"metadata is a number":                  "\x08\x05",
	"name twice":                            field(1, field(1, "b")+metadataOf("a", "ns", "u", "5")),
	"name again at the end":                 field(1, metadataOf("a", "ns", "u", "5")+field(1, "b")),
	"name again, in a long tag":             field(1, metadataOf("a", "ns", "u", "5")+"\x8a\x00\x01b"),
	"version again at the end":              field(1, metadataOf("a", "ns", "u", "5")+"\x38\x01"+field(6, "4")),
	"version is a number":                   field(1, field(1, "a")+field(3, "ns")+field(5, "u")+"\x30\x05"),
	"empty name":                            field(1, metadataOf("", "ns", "u", "5")),
	"empty UID":                             field(1, metadataOf("a", "ns", "", "5")),
	"empty version":                         field(1, metadataOf("a", "ns", "u", "")),
	"no UID":                                field(1, field(1, "a")+field(3, "ns")+field(6, "5")),
	"the following field is cut":            field(1, metadataOf("a", "ns", "u", "5")) + "\x12\x7f",
	"the following field is no field":       field(1, metadataOf("a", "ns", "u", "5")) + "\x07",
	"the following field is a group":        field(1, metadataOf("a", "ns", "u", "5")) + "\x13\x14",
	"the following field is an empty group": field(1, metadataOf("a", "ns", "u", "5")) + "\x13\x00",
	"rest of the metadata is cut":           field(1, metadataOf("a", "ns", "u", "5")+"\x5a\x7f"),
	"rest of the metadata has field":        field(1, metadataOf("a", "ns", "u", "5")+"\x00\x01"),
}

func TestIdentityOfUnusualObjectsIsNotRead(t *testing.T) {
	for name, message := range unusual {
		if id, ok := identify([]byte(message)); ok {
			t.Errorf("%s: read %s", name, id.name)
		}
	}
	usual := field(1, metadataOf("a", "ns", "u", "5")+"\x38\x01"+field(11, "x")+field(11, "y")) + field(2, "spec") + field(3, "status")
	if id, ok := identify([]byte(usual)); !ok || string(id.name) != "a" || string(id.namespace) != "ns" || string(id.uid) != "u" || string(id.version) != "5" {
		t.Errorf("read %+v, %v of a usual object", id, ok)
	}
}

// FuzzIdentity compares the identity in any bytes with that of the object that the generated
// code decodes from them, if it does.
func FuzzIdentity(f *testing.F) {
	for _, message := range unusual {
		f.Add([]byte(message))
	}
	for _, p := range []*corev1.Pod{pod("a", "3"), replica("b", "4"), benchPod(5)} {
		raw := marshal(f, p)
		f.Add(raw)
		f.Add(append(bytes.Clone(raw), raw...))
	}
	f.Fuzz(func(t *testing.T, message []byte) {
		id, ok := identify(message)
		if !ok {
			return
		}
		p := &corev1.Pod{}
		if p.Unmarshal(message) != nil {
			return // the rest of the object is not checked
		}
		if p.Name != string(id.name) || p.Namespace != string(id.namespace) || string(p.UID) != string(id.uid) || p.ResourceVersion != string(id.version) {
			t.Errorf("%x: read %s/%s, version %s, UID %s; decoded %+v", message, id.namespace, id.name, id.version, id.uid, p.ObjectMeta)
		}
	})
}

// TestIdentityIsReadOfAllTypesOfTheAPI encodes an object of each type that has metadata.
func TestIdentityIsReadOfAllTypesOfTheAPI(t *testing.T) {
	types := 0
	for gvk, goType := range clientscheme.Scheme.AllKnownTypes() {
		obj, ok := reflect.New(goType).Interface().(interface {
			metav1.Object
			Marshal() ([]byte, error)
		})
		if !ok || strings.HasSuffix(gvk.Kind, "List") {
			continue
		}
		types++
		if !identifiable(reflect.TypeOf(obj)) {
			t.Errorf("%v: the type is not taken for one that begins with its metadata", gvk)
		}
		obj.SetName("a")
		obj.SetNamespace("ns")
		obj.SetUID("u")
		obj.SetResourceVersion("5")
		obj.SetLabels(map[string]string{"app": "web"})
		if id, ok := identify(marshal(t, obj)); !ok || string(id.name)+string(id.namespace)+string(id.uid)+string(id.version) != "ansu5" {
			t.Errorf("%v: read %+v, %v", gvk, id, ok)
		}
	}
	if types < 100 {
		t.Errorf("%d types were looked at", types)
	}
}

// named has its metadata elsewhere.
type named struct {
	*corev1.Pod
	Meta metav1.ObjectMeta `protobuf:"bytes,1,opt,name=metadata"`
}

func TestIdentifiableTypes(t *testing.T) {
	for goType, want := range map[reflect.Type][2]bool{
		reflect.TypeFor[*corev1.Pod]():                   {true, true},
		reflect.TypeFor[*metav1.PartialObjectMetadata](): {true, true},
		reflect.TypeFor[*unstructured.Unstructured]():    {}, // NewDynamic knows by itself
		reflect.TypeFor[Object]():                        {}, reflect.TypeFor[named](): {}, reflect.TypeFor[*named](): {},
	} {
		if got := [2]bool{identifiable(goType), identifiableInJSON(goType)}; got != want {
			t.Errorf("%v in protobuf and JSON: %v, want %v", goType, got, want)
		}
	}
}
