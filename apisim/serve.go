package apisim

import (
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	internalscheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// writeOptions are the parameters that all writes but deletes have.
type writeOptions struct {
	dryRun          bool
	fieldValidation string
}

// parseWriteOptions reads the parameters of a write into options of its verb.
func parseWriteOptions(r *http.Request, into runtime.Object) (writeOptions, error) {
	if err := internalscheme.ParameterCodec.DecodeParameters(r.URL.Query(), metav1.SchemeGroupVersion, into); err != nil {
		return writeOptions{}, apierrors.NewBadRequest(err.Error())
	}
	var o writeOptions
	var problems field.ErrorList
	var kind string
	switch into := into.(type) {
	case *metav1.CreateOptions:
		kind, problems = "CreateOptions", validation.ValidateCreateOptions(into)
		o = writeOptions{len(into.DryRun) > 0, into.FieldValidation}
	case *metav1.UpdateOptions:
		kind, problems = "UpdateOptions", validation.ValidateUpdateOptions(into)
		o = writeOptions{len(into.DryRun) > 0, into.FieldValidation}
	case *metav1.PatchOptions:
		kind, problems = "PatchOptions", validation.ValidatePatchOptions(into, "")
		o = writeOptions{len(into.DryRun) > 0, into.FieldValidation}
	}
	if len(problems) > 0 {
		return o, apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: kind}, "", problems)
	}
	return o, nil
}

// check does what fieldValidation asks for about fields that are not known: nothing,
// a warning each, which is the default, or an error.
func (o writeOptions) check(w http.ResponseWriter, res *resource, warnings []error) error {
	switch {
	case len(warnings) == 0 || o.fieldValidation == metav1.FieldValidationIgnore:
		return nil
	case o.fieldValidation == metav1.FieldValidationStrict:
		return errUnhandled(res.gvk(), runtime.NewStrictDecodingError(warnings))
	}
	for _, warning := range warnings {
		if header, err := net.NewWarningHeader(299, "", warning.Error()); err == nil {
			w.Header().Add("Warning", header)
		}
	}
	return nil
}

func (s *Server) serveCreate(w http.ResponseWriter, r *http.Request, res *resource, p requestPath) {
	if p.name != "" {
		writeError(w, r, errMethod(r.Method))
		return
	}
	o, err := parseWriteOptions(r, &metav1.CreateOptions{})
	var obj object
	if err == nil {
		obj, err = s.requestObject(w, r, res, p, o)
	}
	if err == nil {
		obj, err = s.create(res, obj, writing{mainResource, o.dryRun})
	}
	s.answer(w, r, res, http.StatusCreated, obj, err)
}

// part returns what a write to a path may change.
func (p requestPath) part() part {
	switch p.subresource {
	case "status":
		return statusOnly
	case "finalize":
		return finalizersOnly
	default:
		return mainResource
	}
}

func (s *Server) serveUpdate(w http.ResponseWriter, r *http.Request, res *resource, p requestPath) {
	if p.name == "" {
		writeError(w, r, errMethod(r.Method))
		return
	}
	o, err := parseWriteOptions(r, &metav1.UpdateOptions{})
	var obj object
	if err == nil {
		obj, err = s.requestObject(w, r, res, p, o)
	}
	if err == nil {
		err = p.checkNames(obj)
	}
	code := http.StatusOK
	if err == nil {
		var created bool
		if obj, created, err = s.update(res, obj, writing{p.part(), o.dryRun}); created {
			code = http.StatusCreated
		}
	}
	s.answer(w, r, res, code, obj, err)
}

func (s *Server) servePatch(w http.ResponseWriter, r *http.Request, res *resource, p requestPath) {
	if p.name == "" {
		writeError(w, r, errMethod(r.Method))
		return
	}
	given, err := readPatch(r, res)
	var o writeOptions
	if err == nil {
		o, err = parseWriteOptions(r, &metav1.PatchOptions{})
	}
	var obj object
	if err == nil {
		obj, err = s.rewrite(res, p, writing{p.part(), o.dryRun}, func(before object) (object, error) {
			after, warnings, err := given.apply(s.decoder, res, before)
			if err != nil {
				return nil, err
			}
			if err := o.check(w, res, warnings); err != nil {
				return nil, errPatched(given.data, err)
			}
			return after, p.checkNames(after)
		})
	}
	s.answer(w, r, res, http.StatusOK, obj, err)
}

func (s *Server) serveDelete(w http.ResponseWriter, r *http.Request, res *resource, p requestPath) {
	if p.subresource != "" {
		writeError(w, r, errMethod(r.Method))
		return
	}
	o, err := s.decoder.deleteOptions(r)
	var obj object
	var gone bool
	if err == nil {
		obj, gone, err = s.delete(res, p.namespace, p.name, o)
	}
	if err != nil || !gone || res.returnsDeleted() {
		s.answer(w, r, res, http.StatusOK, obj, err)
		return
	}
	writeStatus(w, r, &metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess, Code: http.StatusOK,
		Details: &metav1.StatusDetails{Name: obj.GetName(), Group: res.Group, Kind: res.Name, UID: obj.GetUID()},
	})
}

func (s *Server) serveDeleteCollection(w http.ResponseWriter, r *http.Request, res *resource, p requestPath) {
	data, f, err := s.deleteListed(r, res, p)
	if err != nil {
		writeError(w, r, err)
		return
	}
	write(w, f.contentType(), http.StatusOK, data)
}

func (s *Server) deleteListed(r *http.Request, res *resource, p requestPath) ([]byte, form, error) {
	if !res.deletesCollections() {
		return nil, form{}, errMethod(r.Method)
	}
	f, err := negotiate(r, res, listed)
	if err != nil {
		return nil, f, err
	}
	list, err := s.listOptions(r)
	if err != nil {
		return nil, f, err
	}
	selected, err := newSelection(res, p, list)
	if err != nil {
		return nil, f, err
	}
	o, err := s.decoder.deleteOptions(r)
	if err != nil {
		return nil, f, err
	}
	deleted, meta, err := s.deleteCollection(res, selected, list, o)
	if err != nil {
		return nil, f, err
	}
	data, err := encodeList(res, f, meta, deleted)
	return data, f, err
}

// requestObject reads the object in a body and gives it the namespace of the path.
func (s *Server) requestObject(w http.ResponseWriter, r *http.Request, res *resource, p requestPath, o writeOptions) (object, error) {
	data, err := body(r)
	if err != nil {
		return nil, err
	}
	obj, warnings, err := s.decoder.object(data, r.Header.Get("Content-Type"), res)
	if err == nil {
		err = o.check(w, res, warnings)
	}
	if err != nil {
		return nil, err
	}
	switch {
	case obj.GetNamespace() == "":
		obj.SetNamespace(p.namespace)
	case obj.GetNamespace() != p.namespace:
		return nil, apierrors.NewBadRequest("the namespace of the provided object does not match the namespace sent on the request")
	}
	return obj, nil
}

// checkNames refuses an object that is not the one of the path.
func (p requestPath) checkNames(obj object) error {
	switch {
	case obj.GetName() == "":
		return apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s based on URL) was undeterminable: name must be provided", p.name))
	case obj.GetName() != p.name:
		return apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s) does not match the name on the URL (%s)", obj.GetName(), p.name))
	case obj.GetNamespace() != p.namespace:
		return apierrors.NewBadRequest("the namespace of the provided object does not match the namespace sent on the request")
	}
	return nil
}
