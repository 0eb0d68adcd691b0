package apisim

import (
	"mime"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	mediaJSON     = "application/json"
	mediaYAML     = "application/yaml"
	mediaProtobuf = "application/vnd.kubernetes.protobuf"
)

// form is the encoding of an answer, JSON unless another is set, and what it has of its
// objects: all, the metadata, or rows of a table.
type form struct {
	protobuf, yaml bool
	stream         bool // of events
	metadata       bool
	table          bool
	include        metav1.IncludeObjectPolicy // of the objects in the rows
	withoutColumns bool                       // a table before had them
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

// content is the kind of content of an answer.
type content uint8

const (
	singleObject content = iota
	objectList
	eventStream
)

// negotiate chooses the first media type of the Accept header that the server has for a
// resource and a content.
func (x *exchange) negotiate(res *resource, c content) (form, error) {
	f, err := x.chooseForm(res, c)
	if x.call.out != nil {
		x.call.out.form = f
	}
	return f, err
}

func (x *exchange) chooseForm(res *resource, c content) (form, error) {
	accept := x.r.Header.Get("Accept")
	if accept == "" {
		return form{stream: c == eventStream}, nil
	}
	for clause := range strings.SplitSeq(accept, ",") {
		mediaType, params, err := mime.ParseMediaType(clause)
		if err != nil {
			continue
		}
		f := form{stream: c == eventStream}
		if !f.setEncoding(mediaType) || !f.transform(params, c) {
			continue
		}
		if f.protobuf && (f.table || !f.metadata && !res.typed) {
			continue // neither tables nor custom resources have protobuf
		}
		if f.table {
			f.include, err = parseInclude(x.r.URL.Query().Get("includeObject"))
		}
		return f, err
	}
	return form{}, errNotAcceptable(accept)
}

// setEncoding sets the encoding of a media type, and reports whether the server has it.
func (f *form) setEncoding(mediaType string) bool {
	switch mediaType {
	case mediaJSON, "application/*", "*/*":
	case mediaProtobuf:
		f.protobuf = true
	case mediaYAML:
		f.yaml = true
		return !f.stream // YAML has no frames
	default:
		return false
	}
	return true
}

// transform sets the transformation in the parameters of a media type, and reports
// whether the server has it.
func (f *form) transform(params map[string]string, c content) bool {
	as := params["as"]
	if as == "" {
		return true
	}
	if params["g"] != metav1.GroupName || params["v"] != "v1" {
		return false
	}
	metadata := "PartialObjectMetadata"
	if c == objectList {
		metadata += "List"
	}
	f.table, f.metadata = as == "Table", as == metadata
	return f.table || f.metadata
}
