package apisim

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// definitions is the resource of the objects that define resources.
var definitions = schema.GroupVersionResource{
	Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
}

func definitionsResource() *resource {
	r := &resource{storedAs: definitions.GroupVersion(), collection: newCollection()}
	r.Resource = Resource{
		Group: definitions.Group, Version: definitions.Version, Name: definitions.Resource,
		Kind: "CustomResourceDefinition", Singular: "customresourcedefinition",
		ShortNames: []string{"crd", "crds"}, Categories: []string{"api-extensions"}, HasStatus: true,
	}
	r.columns = []printerColumn{{Name: "Created At", Type: "string", JSONPath: creationPath}}
	return r
}

// definition holds the fields of a CustomResourceDefinition that the server reads. It does not read
// the schemas.
type definition struct {
	Metadata struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		Group    string              `json:"group"`
		Scope    string              `json:"scope"`
		Names    definitionNames     `json:"names"`
		Versions []definitionVersion `json:"versions"`
	} `json:"spec"`
	Status definitionStatus `json:"status"`
}

type definitionNames struct {
	Plural     string   `json:"plural"`
	Singular   string   `json:"singular"`
	Kind       string   `json:"kind"`
	ListKind   string   `json:"listKind"`
	ShortNames []string `json:"shortNames,omitempty"`
	Categories []string `json:"categories,omitempty"`
}

type definitionStatus struct {
	Conditions     []metav1.Condition `json:"conditions"`
	AcceptedNames  definitionNames    `json:"acceptedNames"`
	StoredVersions []string           `json:"storedVersions"`
}

type definitionVersion struct {
	Name         string `json:"name"`
	Served       bool   `json:"served"`
	Storage      bool   `json:"storage"`
	Subresources struct {
		Status *struct{}   `json:"status"`
		Scale  *scalePaths `json:"scale"`
	} `json:"subresources"`
	Columns []printerColumn `json:"additionalPrinterColumns"`
	Fields  []struct {
		JSONPath string `json:"jsonPath"`
	} `json:"selectableFields"`
}

func parseDefinition(obj object) (*definition, error) {
	d := &definition{}
	u, res := obj.(*unstructured.Unstructured), definitionsResource()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, d); err != nil {
		return nil, errUnhandled(res.gvk(), err)
	}
	n := &d.Spec.Names
	n.Singular = cmp.Or(n.Singular, strings.ToLower(n.Kind))
	n.ListKind = cmp.Or(n.ListKind, n.Kind+"List")
	if problems := d.problems(); len(problems) > 0 {
		return nil, errInvalid(res, d.Metadata.Name, problems...)
	}
	return d, nil
}

func (d *definition) problems() field.ErrorList {
	var problems field.ErrorList
	spec := field.NewPath("spec")
	required := func(path *field.Path, value string) {
		if value == "" {
			problems = append(problems, field.Required(path, ""))
		}
	}
	required(spec.Child("group"), d.Spec.Group)
	required(spec.Child("names", "plural"), d.Spec.Names.Plural)
	required(spec.Child("names", "kind"), d.Spec.Names.Kind)
	if want := d.Spec.Names.Plural + "." + d.Spec.Group; d.Metadata.Name != want {
		problems = append(problems, field.Invalid(field.NewPath("metadata", "name"), d.Metadata.Name,
			`must be spec.names.plural+"."+spec.group`))
	}
	if scopes := []string{"Cluster", "Namespaced"}; !slices.Contains(scopes, d.Spec.Scope) {
		problems = append(problems, field.NotSupported(spec.Child("scope"), d.Spec.Scope, scopes))
	}
	stored := 0
	for i, v := range d.Spec.Versions {
		required(spec.Child("versions").Index(i).Child("name"), v.Name)
		if v.Storage {
			stored++
		}
	}
	if stored != 1 {
		problems = append(problems, field.Invalid(spec.Child("versions"), d.Spec.Versions,
			"must have exactly one version marked as storage version"))
	}
	return problems
}

func (d *definition) storedAs() schema.GroupVersion {
	i := slices.IndexFunc(d.Spec.Versions, func(v definitionVersion) bool { return v.Storage })
	return schema.GroupVersion{Group: d.Spec.Group, Version: d.Spec.Versions[i].Name}
}

func (d *definition) resources(c *collection) []*resource {
	var served []*resource
	n := d.Spec.Names
	for _, v := range d.Spec.Versions {
		if !v.Served {
			continue
		}
		r := &resource{
			listKind: n.ListKind, storedAs: d.storedAs(), columns: v.Columns,
			scale: v.Subresources.Scale, collection: c,
		}
		r.Resource = Resource{
			Group: d.Spec.Group, Version: v.Name, Name: n.Plural, Kind: n.Kind, Singular: n.Singular,
			ShortNames: n.ShortNames, Categories: n.Categories,
			Namespaced: d.Spec.Scope == "Namespaced", HasStatus: v.Subresources.Status != nil,
		}
		if len(r.columns) == 0 {
			r.columns = defaultColumns()
		}
		for _, f := range v.Fields {
			r.fields = append(r.fields, strings.TrimPrefix(f.JSONPath, "."))
		}
		served = append(served, r)
	}
	return served
}

// cleanupFinalizer keeps a deleted definition until its objects are removed.
const cleanupFinalizer = "customresourcecleanup.apiextensions.k8s.io"

// defineLocked carries out a write of a definition that is about to be stored: it adds, replaces or
// retires the resources. It gives the new state, which is valid, the status that controllers would
// give it.
func (s *Server) defineLocked(before, after object) {
	if after == nil {
		s.retireLocked(before.GetName())
		return
	}
	d, err := parseDefinition(after)
	if err != nil {
		panic(err) // checkObject has accepted it
	}
	u := after.(*unstructured.Unstructured)
	d.setStatus(u)
	if before != nil && equality.Semantic.DeepEqual(
		before.(*unstructured.Unstructured).Object["spec"], u.Object["spec"]) {
		return
	}
	c := s.retireLocked(d.Metadata.Name)
	if c == nil {
		c = newCollection()
		c.definition, c.floor = d.Metadata.Name, s.version
	}
	for _, r := range d.resources(c) {
		s.resources[r.gvr()] = r
	}
}

// retireLocked takes the versions of a definition out of service and returns their collection.
// Their watches end after the events up to now.
func (s *Server) retireLocked(name string) *collection {
	var c *collection
	for gvr, r := range s.resources {
		if r.definition == name {
			c = r.collection
			delete(s.resources, gvr)
		}
	}
	if c != nil {
		c.wake()
	}
	return c
}

// deleteDefinitionLocked deletes a definition: first its objects, then itself.
func (s *Server) deleteDefinitionLocked(r *resource, before object, dryRun bool) object {
	if before.GetDeletionTimestamp() != nil {
		return before
	}
	held := clone(before)
	held.SetFinalizers(append(without(held.GetFinalizers(), cleanupFinalizer), cleanupFinalizer))
	after := marked(held, 0)
	if dryRun {
		return after
	}
	s.commitLocked(r, before, after)
	for _, custom := range s.servedLocked() {
		if custom.definition == before.GetName() {
			custom.terminating = true
			s.deleteAllLocked(custom, "")
			break // the versions share their objects
		}
	}
	s.finishDefinitionLocked(before.GetName())
	return after
}

// finishDefinitionLocked removes a deleted definition without objects.
func (s *Server) finishDefinitionLocked(name string) {
	isEmpty := func(r *resource) bool { return r.definition != name || r.objects.Len() == 0 }
	s.finishLocked(definitions, name, isEmpty, func(obj object) {
		obj.SetFinalizers(without(obj.GetFinalizers(), cleanupFinalizer))
	})
}

// setStatus sets the conditions, names and versions in the status of a definition. It keeps
// conditions of other types.
func (d *definition) setStatus(u *unstructured.Unstructured) {
	set := func(kind, reason, message string) {
		meta.SetStatusCondition(&d.Status.Conditions, metav1.Condition{
			Type: kind, Status: metav1.ConditionTrue, Reason: reason, Message: message,
			LastTransitionTime: now(),
		})
	}
	set("NamesAccepted", "NoConflicts", "no conflicts found")
	set("Established", "InitialNamesAccepted", "the initial names have been accepted")
	if u.GetDeletionTimestamp() != nil {
		set("Terminating", "InstanceDeletionInProgress", "CustomResource deletion is in progress")
	}
	d.Status.AcceptedNames = d.Spec.Names
	if version := d.storedAs().Version; !slices.Contains(d.Status.StoredVersions, version) {
		d.Status.StoredVersions = append(d.Status.StoredVersions, version)
	}
	status, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&d.Status)
	if err != nil {
		panic(err) // plain fields always convert
	}
	u.Object["status"] = status
}
