package guard

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"
)

const (
	// firstRead is the number of bytes after which a scanner looks for the metadata. It looks
	// again each time that the number has doubled, and at the end.
	firstRead = 512
	// maxHead bounds the bytes that are kept. Objects in requests have up to 3 MiB.
	maxHead = 4 << 20
)

// answer is the part of an encoded object, or of a Status, that the guard uses.
type answer struct {
	status bool // it is a Status
	whole  bool // the metadata, or the details of a Status, were read to their end

	// Of the object, or of the details of a Status.
	name, uid, version string

	deleted    bool // it has a deletionTimestamp
	finalizers bool
	grace      bool // it has a grace period above 0
}

// scanner reads an answer from the bytes of a body, which come in pieces of any size. It keeps
// the beginning of the body until the metadata in it is whole.
type scanner struct {
	read   func(head []byte) answer // the reader of the encoding; nil reads nothing
	head   []byte
	next   int // the length of the head at which read is called
	answer answer
}

// scannerFor returns a scanner of the encoding that a header names.
func scannerFor(h http.Header) scanner {
	s := scanner{next: firstRead}
	mediaType, _, _ := strings.Cut(h.Get("Content-Type"), ";")
	switch {
	case h.Get("Content-Encoding") != "":
	case strings.HasSuffix(mediaType, "protobuf"):
		s.read = readProtobuf
	case strings.HasSuffix(mediaType, "cbor"):
		s.read, s.next = readCBOR, maxHead // it cannot be read in parts
	case strings.HasSuffix(mediaType, "json"),
		strings.HasSuffix(mediaType, "yaml"): // an apply, which clients encode in JSON
		s.read = readJSON
	}
	return s
}

func (s *scanner) scan(piece []byte) {
	if s.read == nil {
		return
	}
	head := piece // the first piece is not copied if it is enough
	if len(s.head) > 0 {
		s.head = append(s.head, piece...)
		head = s.head
	}
	if len(head) >= s.next {
		s.next = 2 * len(head)
		s.answer = s.read(head)
	}
	switch {
	case s.answer.whole || len(head) > maxHead:
		s.read, s.head = nil, nil
	case len(s.head) == 0:
		s.head = bytes.Clone(piece)
	}
}

func (s *scanner) result() answer {
	if s.read != nil {
		s.answer = s.read(s.head)
		s.read, s.head = nil, nil
	}
	return s.answer
}

// bodyOf returns a copy of the body of a request, nil if it has none or it cannot be read twice.
func bodyOf(req *http.Request) []byte {
	if req.GetBody == nil {
		return nil
	}
	body, err := req.GetBody()
	if err != nil {
		return nil
	}
	defer body.Close() //nolint:errcheck // it was only read from
	data, err := io.ReadAll(io.LimitReader(body, maxHead))
	if err != nil {
		return nil
	}
	return data
}

// metadataOf reads the metadata of the object in the body of a request. It returns the zero
// answer if it cannot be read.
func metadataOf(req *http.Request) answer {
	s := scannerFor(req.Header)
	s.scan(bodyOf(req))
	return s.result()
}

// deleteOptionsOf reads the options in the body of a DELETE. It returns the zero options for a
// body that cannot be read: the server refuses such a request.
func deleteOptionsOf(req *http.Request) (o metav1.DeleteOptions) {
	data := bodyOf(req)
	if len(data) == 0 {
		return o
	}
	mediaType, _, _ := strings.Cut(req.Header.Get("Content-Type"), ";")
	var err error
	switch {
	case strings.HasSuffix(mediaType, "protobuf"):
		var envelope runtime.Unknown
		if err = envelope.Unmarshal(bytes.TrimPrefix(data, protobufMagic)); err == nil {
			err = o.Unmarshal(envelope.Raw)
		}
	case strings.HasSuffix(mediaType, "cbor"):
		err = direct.Unmarshal(data, &o)
	default:
		err = json.Unmarshal(data, &o)
	}
	if err != nil {
		return metav1.DeleteOptions{}
	}
	return o
}
