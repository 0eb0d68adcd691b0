package apisim

import (
	"mime"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

const (
	mediaJSON     = "application/json"
	mediaYAML     = "application/yaml"
	mediaProtobuf = "application/vnd.kubernetes.protobuf"
)

// form is how objects are shown: in which encoding, JSON if none is named, and whole
// or as metadata.
type form struct {
	protobuf, yaml bool
	metadata       bool
}

// contentType returns the media type of an answer.
func (f form) contentType(watch bool) string {
	switch {
	case f.protobuf && watch:
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
func negotiate(accept string, r *resource, shows shape) (form, error) {
	if accept == "" {
		return form{}, nil
	}
	for clause := range strings.SplitSeq(accept, ",") {
		mediaType, params, err := mime.ParseMediaType(clause)
		if err != nil {
			continue
		}
		var f form
		switch mediaType {
		case mediaJSON, "application/*", "*/*":
		case mediaProtobuf:
			f.protobuf = true
		case mediaYAML:
			if shows == stream {
				continue // a stream of YAML has no frames
			}
			f.yaml = true
		default:
			continue
		}
		wanted := "PartialObjectMetadata"
		if shows == listed {
			wanted += "List"
		}
		switch as := params["as"]; {
		case as == "":
		case as == wanted && params["g"] == metav1.GroupName && params["v"] == "v1":
			f.metadata = true
		default:
			continue
		}
		if f.protobuf && !f.metadata && !r.typed {
			continue // custom resources have no protobuf
		}
		return f, nil
	}
	return form{}, errNotAcceptable(accept)
}
