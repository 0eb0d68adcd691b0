package apisim

import (
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"slices"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/mergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// maxPatchOperations is how many operations a JSON patch may have, as of a real server.
const maxPatchOperations = 10_000

// patch is the body of a PATCH request.
type patch struct {
	kind types.PatchType
	data []byte
}

// patchTypes returns the media types of the patches for a resource. The strategic one
// needs a Go type, whose tags say how its lists are merged.
func patchTypes(res *resource) []string {
	kinds := []string{string(types.JSONPatchType), string(types.MergePatchType)}
	if res.typed {
		kinds = append(kinds, string(types.StrategicMergePatchType))
	}
	return kinds
}

// readPatch reads the patch of a request.
func readPatch(r *http.Request, res *resource) (patch, error) {
	contentType := r.Header.Get("Content-Type")
	mediaType, _, err := mime.ParseMediaType(contentType)
	if err != nil || !slices.Contains(patchTypes(res), mediaType) {
		return patch{}, errUnsupportedBody(patchTypes(res)...)
	}
	data, err := readBody(r)
	return patch{kind: types.PatchType(mediaType), data: data}, err
}

// apply returns an object with the patch applied to it. The warnings are about fields of
// the patch that the object does not have.
func (p patch) apply(s *Server, res *resource, stored object) (obj object, warnings []error,
	err error) {
	original, err := json.Marshal(withKind(stored, res.gvk()))
	if err != nil {
		return nil, nil, err
	}
	var patched []byte
	switch p.kind {
	case types.JSONPatchType:
		patched, err = p.applyOperations(original)
	case types.MergePatchType:
		patched, err = p.merge(original)
	default:
		patched, err = p.mergeStrategically(original, stored)
	}
	if err != nil {
		return nil, nil, err
	}
	obj, warnings, err = s.decode(mediaJSON, patched, res)
	if err != nil {
		return nil, nil, errPatched(patched, err)
	}
	return obj, warnings, nil
}

func (p patch) applyOperations(original []byte) ([]byte, error) {
	operations, err := jsonpatch.DecodePatch(p.data)
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("error decoding patch: %v", err))
	}
	if len(operations) > maxPatchOperations {
		return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("The allowed maximum "+
			"operations in a JSON patch is %d, got %d", maxPatchOperations, len(operations)))
	}
	patched, err := operations.Apply(original)
	if err != nil {
		return nil, errPatchFails(err)
	}
	return patched, nil
}

func (p patch) merge(original []byte) ([]byte, error) {
	if err := p.mustBeObject(); err != nil {
		return nil, err
	}
	return jsonpatch.MergePatch(original, p.data)
}

func (p patch) mergeStrategically(original []byte, stored object) ([]byte, error) {
	if err := p.mustBeObject(); err != nil {
		return nil, err
	}
	patched, err := strategicpatch.StrategicMergePatch(original, p.data, stored)
	switch {
	case errors.Is(err, mergepatch.ErrBadJSONDoc),
		errors.Is(err, mergepatch.ErrBadPatchFormatForPrimitiveList),
		errors.Is(err, mergepatch.ErrBadPatchFormatForRetainKeys),
		errors.Is(err, mergepatch.ErrBadPatchFormatForSetElementOrderList),
		errors.Is(err, mergepatch.ErrUnsupportedStrategicMergePatchFormat):
		return nil, apierrors.NewBadRequest(err.Error())
	case errors.Is(err, mergepatch.ErrNoListOfLists),
		errors.Is(err, mergepatch.ErrPatchContentNotMatchRetainKeys):
		return nil, errPatchFails(err)
	}
	return patched, err
}

func (p patch) mustBeObject() error {
	var fields map[string]any
	if err := json.Unmarshal(p.data, &fields); err != nil {
		return apierrors.NewBadRequest(fmt.Sprintf("error decoding patch: %v", err))
	}
	return nil
}

// errPatched is the answer to a patch after which the object cannot be read.
func errPatched(data []byte, err error) error {
	return apierrors.NewInvalid(schema.GroupKind{}, "", field.ErrorList{
		field.Invalid(field.NewPath("patch"), string(data), err.Error()),
	})
}

// errPatchFails is the answer to a patch that does not fit the object.
func errPatchFails(err error) error {
	return apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "",
		schema.GroupResource{}, "", err.Error(), 0, false)
}
