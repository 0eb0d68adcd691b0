package apisim

import (
	"fmt"
	"mime"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

const (
	mediaJSON     = "application/json"
	mediaYAML     = "application/yaml"
	mediaProtobuf = "application/vnd.kubernetes.protobuf"
)

// form is how objects are shown: in which encoding, JSON if none is named, and whole,
// as metadata, or as rows of a table.
type form struct {
	protobuf, yaml bool
	stream         bool // of events
	metadata       bool
	table          bool
	include        metav1.IncludeObjectPolicy // what the rows have of their objects
	headless       bool                       // the columns were told before
}

// contentType returns the media type of an answer.
func (f form) contentType() string {
	switch {
	case f.protobuf && f.stream:
		return mediaProtobuf + ";stream=watch"
	case f.protobuf:
		return mediaProtobuf
	case f.yaml:
		return mediaYAML
	default:
		return mediaJSON
	}
}

// empty returns an object of a resource in this form, without content.
func (f form) empty(scheme *runtime.Scheme, r *resource) (object, error) {
	switch {
	case f.metadata:
		return metadataOf(&metav1.PartialObjectMetadata{}), nil
	case r.typed:
		obj, err := scheme.New(r.gvk())
		if err != nil {
			return nil, err
		}
		return obj.(object), nil
	default:
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(r.gvk())
		return u, nil
	}
}

// shape is what an answer holds.
type shape uint8

const (
	single shape = iota
	listed
	stream // of events, each with an object
)

// negotiate chooses the first media type of an Accept header that the server has
// for a resource, to show something of a shape.
func negotiate(r *http.Request, res *resource, shows shape) (form, error) {
	f, err := chooseForm(r, res, shows)
	if c := callOf(r); c != nil {
		c.out.form = f
	}
	return f, err
}

func chooseForm(r *http.Request, res *resource, shows shape) (form, error) {
	accept := r.Header.Get("Accept")
	if accept == "" {
		return form{stream: shows == stream}, nil
	}
	for clause := range strings.SplitSeq(accept, ",") {
		mediaType, params, err := mime.ParseMediaType(clause)
		if err != nil {
			continue
		}
		f := form{stream: shows == stream}
		if !f.encode(mediaType, shows) || !f.transform(params, shows) {
			continue
		}
		if f.protobuf && (f.table || !f.metadata && !res.typed) {
			continue // neither tables nor custom resources have protobuf
		}
		if f.table {
			if f.include, err = parseInclude(r.URL.Query().Get("includeObject")); err != nil {
				return form{}, apierrors.NewBadRequest(fmt.Sprintf("Unable to convert to Table as requested: includeObject: %v", err))
			}
		}
		return f, nil
	}
	return form{}, errNotAcceptable(accept)
}

// encode sets the encoding that a media type names, and reports whether the server
// has it.
func (f *form) encode(mediaType string, shows shape) bool {
	switch mediaType {
	case mediaJSON, "application/*", "*/*":
	case mediaProtobuf:
		f.protobuf = true
	case mediaYAML:
		f.yaml = true
		return shows != stream // a stream of YAML has no frames
	default:
		return false
	}
	return true
}

// transform sets what the parameters of a media type ask objects to be turned into,
// and reports whether the server can.
func (f *form) transform(params map[string]string, shows shape) bool {
	as := params["as"]
	if as == "" {
		return true
	}
	if params["g"] != metav1.GroupName || params["v"] != "v1" {
		return false
	}
	wanted := "PartialObjectMetadata"
	if shows == listed {
		wanted += "List"
	}
	f.table, f.metadata = as == "Table", as == wanted
	return f.table || f.metadata
}
