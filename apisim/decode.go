package apisim

import (
	"fmt"
	"io"
	"mime"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
)

// maxBody is the largest body that is read, which is what a real server takes.
const maxBody = 3 << 20

// decoder reads the bodies of requests.
type decoder struct {
	json, protobuf runtime.Decoder
}

func newDecoder(scheme *runtime.Scheme) *decoder {
	return &decoder{
		json:     json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme, scheme, json.SerializerOptions{}),
		protobuf: protobuf.NewSerializer(scheme, scheme),
	}
}

// body reads a body of at most maxBody bytes.
func body(r *http.Request) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the body could not be read: %v", err))
	}
	if len(data) > maxBody {
		return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("limit is %d", maxBody))
	}
	return data, nil
}

// object reads an object of a resource from the body of a request.
func (d *decoder) object(r *http.Request, res *resource) (object, error) {
	data, err := body(r)
	if err != nil {
		return nil, err
	}
	decoder, err := d.forType(r.Header.Get("Content-Type"))
	if err != nil {
		return nil, err
	}
	want := res.gvk()
	var obj runtime.Object
	got := &want
	if res.typed {
		obj, got, err = decoder.Decode(data, &want, nil)
	} else {
		u := &unstructured.Unstructured{}
		err = u.UnmarshalJSON(data)
		found := u.GroupVersionKind()
		obj, got = u, &found
	}
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a %s: %v", want.Kind, want.Version, want.Kind, err))
	}
	if *got != want {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the object provided is of kind %s, the resource holds %s", got, want))
	}
	decoded, ok := obj.(object)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("a %T is not an object that can be stored", obj))
	}
	return decoded, nil
}

// deleteOptions reads the options in the body of a delete, if there is one.
func (d *decoder) deleteOptions(r *http.Request) (*metav1.DeleteOptions, error) {
	data, err := body(r)
	if err != nil || len(data) == 0 {
		return nil, err
	}
	decoder, err := d.forType(r.Header.Get("Content-Type"))
	if err != nil {
		return nil, err
	}
	kind := schema.GroupVersionKind{Version: "v1", Kind: "DeleteOptions"}
	o := &metav1.DeleteOptions{}
	if _, _, err := decoder.Decode(data, &kind, o); err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the delete options cannot be read: %v", err))
	}
	return o, nil
}

func (d *decoder) forType(contentType string) (runtime.Decoder, error) {
	if contentType == "" {
		return d.json, nil
	}
	mediaType, _, err := mime.ParseMediaType(contentType)
	switch {
	case err == nil && mediaType == mediaJSON:
		return d.json, nil
	case err == nil && mediaType == mediaProtobuf:
		return d.protobuf, nil
	default:
		return nil, errUnsupportedBody(contentType)
	}
}
