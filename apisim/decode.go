package apisim

import (
	"encoding/json"
	"errors"
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
	jsonserializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// maxBody is the largest body that is read, which is what a real server takes.
const maxBody = 3 << 20

// decoder reads the bodies of requests. It is strict: of fields that it does not know
// and of doubled ones it makes an error beside the object.
type decoder struct {
	json, yaml, protobuf runtime.Decoder
}

func newDecoder(scheme *runtime.Scheme) *decoder {
	return &decoder{
		json:     jsonserializer.NewSerializerWithOptions(jsonserializer.DefaultMetaFactory, scheme, scheme, jsonserializer.SerializerOptions{Strict: true}),
		yaml:     jsonserializer.NewSerializerWithOptions(jsonserializer.DefaultMetaFactory, scheme, scheme, jsonserializer.SerializerOptions{Strict: true, Yaml: true}),
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

// object reads an object of a resource, and warns of what is in the body and not in
// the object.
func (d *decoder) object(data []byte, contentType string, res *resource) (obj object, warnings []error, err error) {
	decoder, err := d.forType(contentType, res.typed)
	if err != nil {
		return nil, nil, err
	}
	return decodeAs(decoder, data, res)
}

func decodeAs(decoder runtime.Decoder, data []byte, res *resource) (obj object, warnings []error, err error) {
	want := res.gvk()
	var into runtime.Object
	if !res.typed {
		into = &unstructured.Unstructured{}
	}
	decoded, got, err := decoder.Decode(data, &want, into)
	if strict, ok := runtime.AsStrictDecodingError(err); ok && decoded != nil {
		warnings, err = strict.Errors(), nil
	}
	switch {
	case err != nil && got != nil && got.Kind != "" && *got != want && runtime.IsNotRegisteredError(err):
		return nil, nil, errWrongKind(*got, want)
	case err != nil:
		return nil, nil, errUnhandled(want, err)
	}
	if u, ok := decoded.(*unstructured.Unstructured); ok {
		if err := checkMap(u); err != nil {
			return nil, nil, errUnhandled(want, err)
		}
		found := u.GroupVersionKind()
		got = &found
	}
	if *got != want {
		return nil, nil, errWrongKind(*got, want)
	}
	obj, ok := decoded.(object)
	if !ok {
		return nil, nil, apierrors.NewBadRequest(fmt.Sprintf("a %T is not an object that can be stored", decoded))
	}
	return obj, warnings, nil
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

func errUnhandled(want schema.GroupVersionKind, err error) error {
	return apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a %s: %v", want.Kind, want.Version, want.Kind, err))
}

func errWrongKind(got, want schema.GroupVersionKind) error {
	if got.GroupVersion() != want.GroupVersion() {
		return apierrors.NewBadRequest(fmt.Sprintf("the API version in the data (%s) does not match the expected API version (%s)", got.GroupVersion(), want.GroupVersion()))
	}
	return apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a %s: the path is for another kind", got.Kind, got.Version, want.Kind))
}

// deleteOptions reads the options of a delete from the body, or, if that is empty,
// from the parameters.
func (d *decoder) deleteOptions(r *http.Request) (*metav1.DeleteOptions, error) {
	data, err := body(r)
	if err != nil {
		return nil, err
	}
	o := &metav1.DeleteOptions{}
	if len(data) == 0 {
		query := r.URL.Query()
		err = metav1.Convert_url_Values_To_v1_DeleteOptions(&query, o, nil)
	} else {
		err = d.plain(data, r.Header.Get("Content-Type"), o)
	}
	if known := apierrors.APIStatus(nil); err != nil && !errors.As(err, &known) {
		err = apierrors.NewBadRequest(fmt.Sprintf("the delete options cannot be read: %v", err))
	}
	if err != nil {
		return nil, err
	}
	if problems := validation.ValidateDeleteOptions(o); len(problems) > 0 {
		return nil, apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "DeleteOptions"}, "", problems)
	}
	return o, nil
}

// plain reads something that is no object of a resource, whatever group it says that
// it is of: clients name that of the resource.
func (d *decoder) plain(data []byte, contentType string, into interface{ Unmarshal([]byte) error }) error {
	decoder, err := d.forType(contentType, true)
	if err != nil {
		return err
	}
	switch decoder {
	case d.yaml:
		if data, err = yaml.ToJSON(data); err != nil {
			return err
		}
		return json.Unmarshal(data, into)
	case d.json:
		return json.Unmarshal(data, into)
	}
	unknown := &runtime.Unknown{}
	if _, _, err := decoder.Decode(data, nil, unknown); err != nil {
		return err
	}
	return into.Unmarshal(unknown.Raw)
}

// forType returns what reads a media type.
func (d *decoder) forType(contentType string, hasProtobuf bool) (runtime.Decoder, error) {
	if contentType == "" {
		return d.json, nil
	}
	mediaType, _, err := mime.ParseMediaType(contentType)
	switch {
	case err == nil && mediaType == mediaJSON:
		return d.json, nil
	case err == nil && mediaType == mediaYAML:
		return d.yaml, nil
	case err == nil && mediaType == mediaProtobuf && hasProtobuf:
		return d.protobuf, nil
	case hasProtobuf:
		return nil, errUnsupportedBody(contentType, mediaJSON, mediaYAML, mediaProtobuf)
	default:
		return nil, errUnsupportedBody(contentType, mediaJSON, mediaYAML)
	}
}
