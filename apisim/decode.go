package apisim

import (
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
	jsonserializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"sigs.k8s.io/yaml"
)

// maxBody is the largest body that is read, as of a real server.
const maxBody = 3 << 20

// decoder reads the bodies of requests. It is strict: unknown and duplicate fields are an
// error beside the object.
type decoder struct {
	json, yaml, protobuf runtime.Decoder
}

func newDecoder(scheme *runtime.Scheme) *decoder {
	strict := func(o jsonserializer.SerializerOptions) runtime.Decoder {
		o.Strict = true
		meta := jsonserializer.DefaultMetaFactory
		return jsonserializer.NewSerializerWithOptions(meta, scheme, scheme, o)
	}
	return &decoder{
		json:     strict(jsonserializer.SerializerOptions{}),
		yaml:     strict(jsonserializer.SerializerOptions{Yaml: true}),
		protobuf: protobuf.NewSerializer(scheme, scheme),
	}
}

// readBody reads a body of at most maxBody bytes.
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

// decodeAs reads an object of a resource. The warnings are about fields of the data that
// the object does not have.
func decodeAs(decoder runtime.Decoder, data []byte, res *resource) (obj object, warnings []error,
	err error) {
	want := res.gvk()
	var into runtime.Object
	if !res.typed {
		into = &unstructured.Unstructured{}
	}
	decoded, got, err := decoder.Decode(data, &want, into)
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
	obj, ok := decoded.(object)
	if !ok {
		return nil, nil, apierrors.NewBadRequest(
			fmt.Sprintf("a %T is not an object that can be stored", decoded))
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

// deleteOptions reads the options of a delete from the body, or, if that is empty, from
// the parameters.
func (d *decoder) deleteOptions(r *http.Request) (*metav1.DeleteOptions, error) {
	data, err := readBody(r)
	if err != nil {
		return nil, err
	}
	o := &metav1.DeleteOptions{}
	if len(data) == 0 {
		query := r.URL.Query()
		err = metav1.Convert_url_Values_To_v1_DeleteOptions(&query, o, nil)
	} else {
		err = d.decodeDeleteOptions(data, r.Header.Get("Content-Type"), o)
	}
	if known := apierrors.APIStatus(nil); err != nil && !errors.As(err, &known) {
		err = apierrors.NewBadRequest(fmt.Sprintf("the delete options cannot be read: %v", err))
	}
	if err != nil {
		return nil, err
	}
	if problems := validation.ValidateDeleteOptions(o); len(problems) > 0 {
		return nil, errInvalidOptions("DeleteOptions", problems)
	}
	return o, nil
}

// decodeDeleteOptions reads options of any group: clients name that of the resource,
// meta.k8s.io or none.
func (d *decoder) decodeDeleteOptions(data []byte, contentType string,
	into *metav1.DeleteOptions) error {
	decoder, err := d.forType(contentType, true)
	switch {
	case err != nil:
		return err
	case decoder == d.protobuf:
		unknown := &runtime.Unknown{}
		if _, _, err := decoder.Decode(data, nil, unknown); err != nil {
			return err
		}
		err = into.Unmarshal(unknown.Raw)
		into.Kind = unknown.Kind
	default: // JSON is YAML
		err = yaml.Unmarshal(data, into)
	}
	if err == nil && into.Kind != "" && into.Kind != "DeleteOptions" {
		err = fmt.Errorf("the body is a %s and not DeleteOptions", into.Kind)
	}
	return err
}

// forType returns the decoder of a media type.
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
		return nil, errUnsupportedBody(mediaJSON, mediaYAML, mediaProtobuf)
	default:
		return nil, errUnsupportedBody(mediaJSON, mediaYAML)
	}
}
