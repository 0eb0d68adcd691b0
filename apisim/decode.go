package apisim

import (
	"cmp"
	"fmt"
	"io"
	"mime"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"
)

// maxBody is the limit of the size of a body in bytes, that of a real server.
const maxBody = 3 << 20

func readBody(r *http.Request) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the body could not be read: %v", err))
	}
	if len(data) > maxBody {
		return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("limit is %d", maxBody))
	}
	return data, nil
}

// plainCodecs know no types: they encode any object, and decode into the object that they receive.
var plainCodecs = serializer.NewCodecFactory(runtime.NewScheme())

// codecOf returns the codec of a media type. Custom resources have no protobuf.
func codecOf(all serializer.CodecFactory, contentType string, typed bool) (runtime.SerializerInfo,
	error) {
	mediaType, _, err := mime.ParseMediaType(cmp.Or(contentType, mediaJSON))
	var accepted []string
	for _, codec := range all.SupportedMediaTypes() {
		if codec.MediaType == mediaProtobuf && !typed {
			continue
		}
		if err == nil && codec.MediaType == mediaType {
			return codec, nil
		}
		accepted = append(accepted, codec.MediaType)
	}
	return runtime.SerializerInfo{}, errUnsupportedBody(accepted)
}

// decode reads an object of a resource. The warnings are about unknown and duplicate
// fields of the data.
func decode(contentType string, data []byte, res *resource) (obj object, warnings []error,
	err error) {
	codec, err := codecOf(scheme.Codecs, contentType, res.typed)
	if err != nil {
		return nil, nil, err
	}
	want := res.gvk()
	var into runtime.Object
	if !res.typed {
		into = &unstructured.Unstructured{}
	}
	decoded, got, err := codec.StrictSerializer.Decode(data, &want, into)
	if strict, ok := runtime.AsStrictDecodingError(err); ok && decoded != nil {
		warnings, err = strict.Errors(), nil
	}
	if err != nil {
		known := got != nil && got.Kind != "" && *got != want
		if known && runtime.IsNotRegisteredError(err) {
			return nil, nil, errWrongKind(*got, want)
		}
		return nil, nil, errUnhandled(want, err)
	}
	if u, ok := decoded.(*unstructured.Unstructured); ok {
		if err := checkMap(u); err != nil {
			return nil, nil, errUnhandled(want, err)
		}
		got = new(u.GroupVersionKind())
	}
	if *got != want {
		return nil, nil, errWrongKind(*got, want)
	}
	return decoded.(object), warnings, nil
}

// checkMap refuses an object whose metadata cannot be read.
func checkMap(u *unstructured.Unstructured) error {
	given, ok := u.Object["metadata"]
	if !ok || given == nil {
		u.Object["metadata"] = map[string]any{}
		return nil
	}
	metadata, ok := given.(map[string]any)
	if !ok {
		return fmt.Errorf("metadata is a %T and not an object", given)
	}
	return runtime.DefaultUnstructuredConverter.FromUnstructured(metadata, &metav1.ObjectMeta{})
}

// deleteOptions reads the options of a delete from the body, or from the parameters if the body is
// empty. The options may be of any group: clients name the group of the resource, meta.k8s.io or no
// group.
func deleteOptions(r *http.Request) (*metav1.DeleteOptions, error) {
	data, err := readBody(r)
	if err != nil {
		return nil, err
	}
	o, kind := &metav1.DeleteOptions{}, &schema.GroupVersionKind{}
	if len(data) == 0 {
		query := r.URL.Query()
		err = metav1.Convert_url_Values_To_v1_DeleteOptions(&query, o, nil)
	} else {
		codec, unsupported := codecOf(plainCodecs, r.Header.Get("Content-Type"), true)
		if unsupported != nil {
			return nil, unsupported
		}
		_, kind, err = codec.Serializer.Decode(data, nil, o)
	}
	if err == nil && kind.Kind != "" && kind.Kind != "DeleteOptions" {
		err = fmt.Errorf("the body is a %s and not DeleteOptions", kind.Kind)
	}
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the delete options cannot be read: %v", err))
	}
	if problems := validation.ValidateDeleteOptions(o); len(problems) > 0 {
		return nil, errInvalidOptions("DeleteOptions", problems)
	}
	return o, nil
}
