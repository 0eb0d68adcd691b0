package apisim

import (
	"cmp"
	"iter"
	"mime"
	"net/http"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

const (
	mediaJSON     = runtime.ContentTypeJSON
	mediaYAML     = runtime.ContentTypeYAML
	mediaProtobuf = runtime.ContentTypeProtobuf
	// streamSuffix marks the media type of a watch in protobuf.
	streamSuffix = ";stream=watch"
)

// form is the encoding of an answer, and the part of the objects that it shows: all, the metadata,
// or rows of a table.
type form struct {
	mediaType       string // "" is JSON
	stream          bool   // of events
	metadata, table bool
	include         metav1.IncludeObjectPolicy // of the objects in the rows
	withoutColumns  bool                       // an earlier table of the watch had them
	withoutManaged  bool                       // the objects are sent without managed fields
}

func (f form) contentType() string {
	if f.stream && f.mediaType == mediaProtobuf {
		return mediaProtobuf + streamSuffix
	}
	return cmp.Or(f.mediaType, mediaJSON)
}

func (f form) codec() runtime.SerializerInfo {
	all := plainCodecs.SupportedMediaTypes()
	info, _ := runtime.SerializerInfoForMediaType(all, cmp.Or(f.mediaType, mediaJSON))
	return info
}

// content is the kind of content of an answer.
type content uint8

const (
	singleObject content = iota
	objectList
	eventStream
)

// mediaTypes returns the media types of an Accept header and their parameters.
func mediaTypes(accept string) iter.Seq2[string, map[string]string] {
	return func(yield func(string, map[string]string) bool) {
		for clause := range strings.SplitSeq(accept, ",") {
			mediaType, params, err := mime.ParseMediaType(clause)
			if err == nil && !yield(mediaType, params) {
				return
			}
		}
	}
}

// negotiate chooses the first media type of the Accept header that the server supports for a
// resource and a content.
func (x *exchange) negotiate(res *resource, c content) (form, error) {
	accept := cmp.Or(x.r.Header.Get("Accept"), mediaJSON)
	for mediaType, params := range mediaTypes(accept) {
		f := form{stream: c == eventStream}
		if !f.setEncoding(mediaType) || !f.transform(params, c) || !x.server.takes(params) {
			continue
		}
		if x.server.o.ManagedFieldsOptOut && !f.setDrop(params["drop"]) {
			continue
		}
		if f.mediaType == mediaProtobuf && (f.table || !f.metadata && !res.typed) {
			continue // neither tables nor custom resources have protobuf
		}
		var err error
		if f.table {
			f.include, err = parseInclude(x.r.URL.Query().Get("includeObject"))
		}
		return f, err
	}
	return form{}, errGeneric(http.StatusNotAcceptable, "only the following media types are accepted: "+
		strings.Join([]string{mediaJSON, mediaYAML, mediaProtobuf}, ", "))
}

// setEncoding sets the encoding of a media type, and reports whether it is supported.
func (f *form) setEncoding(mediaType string) bool {
	switch mediaType {
	case mediaJSON, "application/*", "*/*":
		return true
	case mediaProtobuf, mediaYAML:
		f.mediaType = mediaType
		return mediaType == mediaProtobuf || !f.stream // a watch in YAML is not supported
	default:
		return false
	}
}

// knownParameters are the parameters of media types that Kubernetes knows, and the weight that every
// server knows. The parameter drop is another one with Options.ManagedFieldsOptOut.
var knownParameters = []string{"as", "export", "g", "pretty", "profile", "q", "stream", "sv", "v"}

// takes reports whether a media type with such parameters is accepted, even if the server does not
// know one of them.
func (s *Server) takes(params map[string]string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.refuseParameters {
		return true
	}
	for name := range params {
		known := slices.Contains(knownParameters, name) || name == "drop" && s.o.ManagedFieldsOptOut
		if !known {
			return false
		}
	}
	return true
}

// setDrop sets the field that the parameter drop leaves out, and reports whether that is supported.
func (f *form) setDrop(field string) bool {
	f.withoutManaged = field == "metadata.managedFields"
	return f.withoutManaged || field == ""
}

// transform sets the transformation in the parameters of a media type, and reports
// whether it is supported.
func (f *form) transform(params map[string]string, c content) bool {
	as := params["as"]
	if as == "" {
		return true
	}
	metadata := "PartialObjectMetadata"
	if c == objectList {
		metadata += "List"
	}
	f.table, f.metadata = as == "Table", as == metadata
	return params["g"] == metav1.GroupName && params["v"] == "v1" && (f.table || f.metadata)
}
