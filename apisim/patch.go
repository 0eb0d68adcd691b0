package apisim

import (
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"slices"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// maxPatchOperations is the limit of the operations of a JSON patch, as in a real server.
const maxPatchOperations = 10_000

// patch is the body of a PATCH request.
type patch struct {
	kind types.PatchType
	data []byte
}

// patchTypes returns the media types of the patches for a resource. The strategic patch needs a Go
// type, whose tags describe the merging of its lists.
func patchTypes(res *resource) []string {
	kinds := []string{string(types.JSONPatchType), string(types.MergePatchType)}
	if res.typed {
		kinds = append(kinds, string(types.StrategicMergePatchType))
	}
	if res.collection != nil { // a scale is not stored
		kinds = append(kinds, string(types.ApplyPatchType))
	}
	return kinds
}

func readPatch(r *http.Request, res *resource) (patch, error) {
	contentType := r.Header.Get("Content-Type")
	mediaType, _, err := mime.ParseMediaType(contentType)
	if err != nil || !slices.Contains(patchTypes(res), mediaType) {
		return patch{}, errUnsupportedBody(patchTypes(res))
	}
	data, err := readBody(r)
	return patch{kind: types.PatchType(mediaType), data: data}, err
}

// apply returns an object with the patch applied to it. The warnings are about fields of the patch
// that the object does not have.
func (p patch) apply(res *resource, stored object) (obj object, warnings []error, err error) {
	original, err := json.Marshal(withKind(stored, res.gvk()))
	if err != nil {
		return nil, nil, err
	}
	patched, err := p.applyJSON(original, stored)
	if err != nil {
		return nil, nil, err
	}
	if obj, warnings, err = decode(mediaJSON, patched, res); err != nil {
		err = errPatched(patched, err)
	}
	return obj, warnings, err
}

// applyJSON returns the JSON of an object with the patch applied to it. The type of stored
// determines the merging of lists by a strategic patch.
func (p patch) applyJSON(original []byte, stored object) (patched []byte, err error) {
	var operations jsonpatch.Patch
	if p.kind == types.JSONPatchType {
		operations, err = jsonpatch.DecodePatch(p.data)
	} else {
		err = json.Unmarshal(p.data, &map[string]any{})
	}
	switch {
	case err != nil:
		return nil, apierrors.NewBadRequest(fmt.Sprintf("error decoding patch: %v", err))
	case len(operations) > maxPatchOperations:
		return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("The allowed maximum "+
			"operations in a JSON patch is %d, got %d", maxPatchOperations, len(operations)))
	case p.kind == types.JSONPatchType:
		patched, err = operations.Apply(original)
	case p.kind == types.MergePatchType:
		patched, err = jsonpatch.MergePatch(original, p.data)
	default:
		patched, err = strategicpatch.StrategicMergePatch(original, p.data, stored)
	}
	if err != nil { // the patch does not fit the object
		return nil, apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "",
			schema.GroupResource{}, "", err.Error(), 0, false)
	}
	return patched, nil
}

// errPatched is the answer to a patch whose result cannot be decoded.
func errPatched(data []byte, err error) error {
	return apierrors.NewInvalid(schema.GroupKind{}, "", field.ErrorList{
		field.Invalid(field.NewPath("patch"), string(data), err.Error()),
	})
}
