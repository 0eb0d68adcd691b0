package apisim

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	internalscheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	optionsvalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/net"
)

// objectPart is the part of an object that a write may change.
type objectPart uint8

const (
	// wholeObject is object and status, for writes of tests that bypass the API.
	wholeObject objectPart = iota
	// withSystemMetadata is a wholeObject with metadata that otherwise the system sets.
	withSystemMetadata
	// mainResource is all but the status, if the resource has one.
	mainResource
	// statusOnly is the status, and with some types the metadata.
	statusOnly
	// finalizersOnly is the finalizers in the specification of a namespace.
	finalizersOnly
)

// writeOptions are the choices of a write.
type writeOptions struct {
	part            objectPart
	subresource     string
	dryRun          bool // answers like a write, and stores nothing
	fieldValidation string
	manager         string // of the fields that are written, "" for tests that bypass the API
	applies, force  bool   // a server-side apply; it may take fields from other managers
}

// writeOptions parses the parameters of a create, an update, or a patch of a kind.
func (x *exchange) writeOptions(kind types.PatchType) (writeOptions, error) {
	o := &metav1.PatchOptions{} // PatchOptions has the fields of the other options too
	if err := x.decodeParameters(o); err != nil {
		return writeOptions{}, err
	}
	if x.asked.Verb != "patch" {
		o.Force = nil
	}
	if problems := optionsvalidation.ValidatePatchOptions(o, kind); len(problems) > 0 {
		name := strings.ToUpper(x.asked.Verb[:1]) + x.asked.Verb[1:] + "Options"
		return writeOptions{}, errInvalidOptions(name, problems)
	}
	program, _, _ := strings.Cut(x.r.UserAgent(), "/")
	part := mainResource
	switch x.path.subresource {
	case "status":
		part = statusOnly
	case "finalize":
		part = finalizersOnly
	}
	return writeOptions{
		part: part, subresource: x.path.subresource, dryRun: len(o.DryRun) > 0,
		fieldValidation: o.FieldValidation, manager: cmp.Or(o.FieldManager, program),
		applies: kind == types.ApplyPatchType, force: o.Force != nil && *o.Force,
	}, nil
}

func (x *exchange) decodeParameters(into runtime.Object) error {
	codec, query := internalscheme.ParameterCodec, x.r.URL.Query()
	if err := codec.DecodeParameters(query, metav1.SchemeGroupVersion, into); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	return nil
}

// checkFields carries out the option fieldValidation for unknown fields: it ignores them, adds a
// warning for each, which is the default, or returns an error.
func (x *exchange) checkFields(o writeOptions, warnings []error) error {
	switch {
	case len(warnings) == 0 || o.fieldValidation == metav1.FieldValidationIgnore:
		return nil
	case o.fieldValidation == metav1.FieldValidationStrict:
		return errUnhandled(x.bodyResource().gvk(), runtime.NewStrictDecodingError(warnings))
	}
	for _, warning := range warnings {
		if header, err := net.NewWarningHeader(299, "", warning.Error()); err == nil {
			x.w.Header().Add("Warning", header)
		}
	}
	return nil
}

// given reads the object in the body and the options, and gives the object the namespace of the
// path.
func (x *exchange) given() (object, writeOptions, error) {
	o, err := x.writeOptions("")
	if err != nil {
		return nil, o, err
	}
	data, err := readBody(x.r)
	if err != nil {
		return nil, o, err
	}
	obj, warnings, err := decode(x.r.Header.Get("Content-Type"), data, x.bodyResource())
	if err == nil {
		err = x.checkFields(o, warnings)
	}
	if err != nil {
		return nil, o, err
	}
	return obj, o, x.path.setNamespace(obj)
}

// setNamespace gives an object the namespace of the path, and refuses one with another namespace.
// Objects of the cluster lose theirs.
func (p requestPath) setNamespace(obj object) error {
	if obj.GetNamespace() == "" || p.namespace == "" {
		obj.SetNamespace(p.namespace)
	}
	if obj.GetNamespace() != p.namespace {
		return apierrors.NewBadRequest(
			"the namespace of the provided object does not match the namespace sent on the request")
	}
	return nil
}

// checkNames refuses an object whose name or namespace differs from the path.
func (p requestPath) checkNames(obj object) error {
	switch {
	case obj.GetName() == "":
		return apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s based on URL) was "+
			"undeterminable: name must be provided", p.name))
	case obj.GetName() != p.name:
		return apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s) does not match the "+
			"name on the URL (%s)", obj.GetName(), p.name))
	}
	return p.setNamespace(obj)
}

// now returns the time in the precision of the API, a second.
func now() metav1.Time { return metav1.NewTime(time.Now().Truncate(time.Second)) }

// checkObject refuses an object that a resource cannot hold.
func checkObject(r *resource, obj object) error {
	if r.gvr() != definitions {
		return nil
	}
	_, err := parseDefinition(obj)
	return err
}

// setStoredForm gives an object the form in which it is stored. A typed object has no kind. A map
// has the version in which all objects of the collection are stored.
func setStoredForm(r *resource, obj object) {
	if !r.typed {
		obj.GetObjectKind().SetGroupVersionKind(r.storedAs.WithKind(r.Kind))
		return
	}
	obj.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	secret, ok := obj.(*corev1.Secret)
	if !ok {
		return
	}
	for key, value := range secret.StringData {
		if secret.Data == nil {
			secret.Data = make(map[string][]byte)
		}
		secret.Data[key] = []byte(value)
	}
	secret.StringData = nil
}

// commitLocked stores a new state, nil for a delete, and appends the event. The state must not be
// shared yet: it gets the version of the write.
func (s *Server) commitLocked(r *resource, before, after object) {
	s.advanceLocked()
	s.storeLocked(r, before, after)
}

// storeLocked is commitLocked for one of several writes with the same version.
func (s *Server) storeLocked(r *resource, before, after object) {
	if r.gvr() == definitions {
		s.defineLocked(before, after)
	}
	e := &event{version: s.version, before: before, after: after}
	if after != nil {
		e.key = keyOf(after)
		after.SetResourceVersion(versionString(s.version))
		rememberTexts(after)
		r.objects.Set(e.key, after)
	} else {
		e.key = keyOf(before)
		r.objects.Delete(e.key)
	}
	r.add(e, s.o.HistoryLimit)
	if s.o.OnWrite != nil {
		s.o.OnWrite(r.gvr(), versionString(s.version))
	}
}

func (s *Server) advanceLocked() {
	s.version++
	close(s.advanced)
	s.advanced = make(chan struct{})
	for _, r := range s.instances {
		r.wroteLocked(s.version)
	}
}

// checkPreconditions refuses a write if the stored object has another UID or version. Empty
// conditions are ignored.
func checkPreconditions(r *resource, stored object, uid types.UID, version string) error {
	switch {
	case uid != "" && uid != stored.GetUID():
		return errConflict(r, stored, "Precondition failed: UID in precondition: %s, "+
			"UID in object meta: %s", uid, stored.GetUID())
	case version != "" && version != stored.GetResourceVersion():
		return apierrors.NewConflict(r.groupResource(), stored.GetName(), errModified)
	}
	return nil
}

func errConflict(r *resource, obj object, format string, args ...any) error {
	return apierrors.NewConflict(r.groupResource(), obj.GetName(), fmt.Errorf(format, args...))
}

// rewrite replaces the object of the path by the result of a function of its present state.
func (x *exchange) rewrite(o writeOptions, change func(before object) (object, error)) (object,
	error) {
	x.server.mu.Lock()
	defer x.server.mu.Unlock()
	before, err := x.server.getLocked(x.res, x.path.namespace, x.path.name)
	if err != nil {
		return nil, err
	}
	after, err := change(before)
	if err != nil {
		return nil, err
	}
	return x.server.replaceLocked(x.res, before, after, o)
}

func (x *exchange) create() (object, error) {
	if x.res.isReview {
		return x.review()
	}
	obj, o, err := x.given()
	if err != nil {
		return nil, err
	}
	x.status = http.StatusCreated
	return x.server.create(x.res, obj, o)
}

func (x *exchange) update() (object, error) {
	obj, o, err := x.given()
	if err == nil {
		err = x.path.checkNames(obj)
	}
	if err != nil {
		return nil, err
	}
	if x.path.subresource == "scale" {
		return x.rewrite(o, func(before object) (object, error) {
			return x.res.scale.apply(x.res, before, obj)
		})
	}
	stored, created, err := x.server.update(x.res, obj, o)
	if created {
		x.status = http.StatusCreated
	}
	return stored, err
}

func (x *exchange) patch() (object, error) {
	given, err := readPatch(x.r, x.bodyResource())
	if err != nil {
		return nil, err
	}
	o, err := x.writeOptions(given.kind)
	if err != nil {
		return nil, err
	}
	if o.applies {
		return x.apply(given, o)
	}
	return x.rewrite(o, func(before object) (object, error) {
		after, warnings, err := given.apply(x.bodyResource(), x.body(before))
		if err != nil {
			return nil, err
		}
		if err := x.checkFields(o, warnings); err != nil {
			return nil, errPatched(given.data, err)
		}
		if err := x.path.checkNames(after); err != nil || x.path.subresource != "scale" {
			return after, err
		}
		return x.res.scale.apply(x.res, before, after)
	})
}
