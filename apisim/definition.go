package apisim

import (
	"cmp"
	"slices"
	"strings"

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

// definition holds the fields of a CustomResourceDefinition that the server reads: all but
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
