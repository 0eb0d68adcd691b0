package source

import (
	"fmt"
	"mime"
	"net/http"
	"reflect"
	"strings"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	sigsjson "sigs.k8s.io/json"

	"github.com/tidings-go/tidings/internal/decode/dedup"
	"github.com/tidings-go/tidings/internal/decode/fieldpath"
)

const (
	jsonType     = "application/json"
	protobufType = "application/vnd.kubernetes.protobuf"
)

// errNotAskedFor is the error of an answer in protobuf to a request for JSON.
var errNotAskedFor = fmt.Errorf("%w: protobuf was not asked for", ErrMalformed)

// decoder makes objects of one kind from their encoded form.
type decoder[T Object] interface {
	// accept returns the Accept header for a list or a watch; with jsonOnly it does not ask
	// for protobuf.
	accept(watch, jsonOnly bool) string
	// json decodes an object. list is the kind of the list that it stood in; none for another one.
	json(data []byte, list schema.GroupVersionKind) (T, error)
	// protobuf decodes a message that came without an envelope.
	protobuf(message []byte) (T, error)
	// wants returns the kind of the objects.
	wants() schema.GroupVersionKind
	// stats returns the counts of decoded objects.
	stats() DecodingStats
	// without leaves fields out of the objects. It is called before the first object is decoded.
	without(paths []string) error
	// setKind sets the kind of objects that do not come with the one of their resource.
	setKind(schema.GroupVersionKind)
}

// unmarshalJSON decodes JSON as the API machinery does: field names with their case, whole
// numbers as int64. Its error does not quote the data.
func unmarshalJSON(data []byte, into any) error {
	return undecodable(sigsjson.UnmarshalCaseSensitivePreserveInts(data, into))
}

// mediaTypeOf returns the media type of an answer without its parameters.
func mediaTypeOf(resp *http.Response) string {
	mediaType, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if err != nil {
		return jsonType
	}
	return mediaType
}

// unmarshalStatus reads a Status in either encoding. In JSON it may come without its kind.
func unmarshalStatus(protobuf bool, data []byte, status *metav1.Status) error {
	want := metav1.Unversioned.WithKind("Status")
	if !protobuf {
		err := unmarshalJSON(data, status)
		if got := status.GroupVersionKind(); err == nil && got.Kind != "" && got.Kind != want.Kind {
			err = WrongKind(got, want)
		}
		return err
	}
	e, err := openEnvelope(data)
	if err == nil && string(e.kind) != want.Kind {
		err = WrongKind(e.groupVersionKind(), want)
	}
	if err != nil {
		return err
	}
	return status.Unmarshal(e.raw)
}

// typedDecoder decodes into the Go type of an API.
type typedDecoder[T Object] struct {
	make func() T
	gvk  schema.GroupVersionKind // under which the server sends the objects
	// kind is written into the objects: metadata gets that of its resource. Nil leaves it empty.
	kind       atomic.Pointer[schema.GroupVersionKind]
	isProtobuf bool
	as         string // media type parameters that ask for another form of the object
	shared     *dedup.Decoder
	structs    *dedup.StructDecoder
	sharer     *dedup.Sharer // of objects that structs leaves alone; nil shares nothing
	inJSON     atomic.Int64
}

func newTypedDecoder[T Object](gvk schema.GroupVersionKind, make func() T, table *Table,
	sharing Sharing) *typedDecoder[T] {
	d := &typedDecoder[T]{make: make, gvk: gvk}
	d.read(make(), table, sharing)
	return d
}

// read makes a new decoder one of objects of the Go type of example.
func (d *typedDecoder[T]) read(example any, table *Table, sharing Sharing) {
	if sharing == ShareAll {
		d.sharer = dedup.NewSharer(table, dedup.SharerOptions{NoSecrets: true})
	}
	d.structs = dedup.NewStructDecoder(table, d.gvk, example, sharing)
	var message dedup.Message
	if message, d.isProtobuf = example.(dedup.Message); d.isProtobuf {
		d.shared = dedup.NewDecoder(table, message, sharing)
	}
}

func (d *typedDecoder[T]) without(paths []string) error {
	var err error
	if d.structs, err = d.structs.Without(paths...); err == nil && d.isProtobuf {
		d.shared, err = d.shared.Without(paths...)
	}
	return err
}

// metadataForm has the media type parameters that ask for metadata alone, with a kind to fill in.
const metadataForm = ";as=%s;g=meta.k8s.io;v=v1"

// metadataKind is the kind of metadata alone.
var metadataKind = metav1.SchemeGroupVersion.WithKind("PartialObjectMetadata")

func newMetadata() *metav1.PartialObjectMetadata { return new(metav1.PartialObjectMetadata) }

// newMetadataDecoder returns a decoder of the metadata of a resource. The objects get the kind of
// the resource; they get none with noKind.
func newMetadataDecoder(table *Table, sharing Sharing, of Resource,
	noKind bool) *typedDecoder[*metav1.PartialObjectMetadata] {
	d := newTypedDecoder(metadataKind, newMetadata, table, sharing)
	switch {
	case noKind:
	case of.Kind != "":
		d.setKind(of.groupVersionKind())
	default:
		d.setKind(metadataKind)
	}
	d.as = metadataForm
	return d
}

func (d *typedDecoder[T]) wants() schema.GroupVersionKind       { return d.gvk }
func (d *typedDecoder[T]) setKind(kind schema.GroupVersionKind) { d.kind.Store(&kind) }

func (d *typedDecoder[T]) accept(watch, jsonOnly bool) string {
	as := d.as
	if as != "" {
		kind := d.gvk.Kind
		if !watch {
			kind += "List"
		}
		as = fmt.Sprintf(as, kind)
	}
	if !d.isProtobuf || jsonOnly {
		return jsonType + as
	}
	if watch {
		return protobufType + as + ";stream=watch," + jsonType + as
	}
	return protobufType + as + "," + jsonType + as
}

func (d *typedDecoder[T]) stats() DecodingStats {
	s := DecodingStats{JSON: d.inJSON.Load()}
	if d.sharer != nil {
		s.After = d.sharer.Stats()
	}
	if d.isProtobuf {
		s.Add(decodingStats(d.shared))
	}
	if inJSON := decodingStats(d.structs); s.JSON > 0 || !d.isProtobuf {
		s.Add(inJSON)
	}
	return s
}

func (d *typedDecoder[T]) json(data []byte, list schema.GroupVersionKind) (T, error) {
	d.inJSON.Add(1)
	obj := d.make()
	shared, err := d.structs.Unmarshal(data, obj)
	if wrong, ok := d.wrongKind(err); ok {
		return obj, wrong
	}
	if err != nil {
		return obj, fmt.Errorf("%w %s in JSON: %w", ErrMalformed, d.gvk.Kind, undecodableField(err, data, obj))
	}
	if got := kindOf(obj); got.Kind != "" && (got.GroupVersion() != d.gvk.GroupVersion() ||
		got.Kind != d.gvk.Kind && d.gvk.Kind != "") {
		return obj, WrongKind(got, d.gvk)
	}
	if list.Empty() || d.kind.Load() != nil {
		// As with typed clients, items of lists keep the kind they come with. Those of
		// built-in types come without.
		d.giveKind(obj)
	}
	if shared || d.sharer == nil {
		return obj, nil
	}
	return d.sharer.Share(obj).(T), nil
}

func (d *typedDecoder[T]) protobuf(message []byte) (T, error) {
	obj := d.make()
	if !d.isProtobuf {
		return obj, errNotAskedFor
	}
	if err := d.shared.Unmarshal(message, obj); err != nil {
		return obj, fmt.Errorf("%w %s in protobuf: %w", ErrMalformed, d.gvk.Kind, err)
	}
	d.giveKind(obj)
	return obj, nil
}

// giveKind removes the kind from a typed object, as client-go's typed clients do, or sets that
// of metadata.
func (d *typedDecoder[T]) giveKind(obj T) {
	kind := schema.GroupVersionKind{}
	if known := d.kind.Load(); known != nil {
		kind = *known
	}
	if obj, ok := any(obj).(runtime.Object); ok {
		obj.GetObjectKind().SetGroupVersionKind(kind)
	}
}

// kindOf returns the kind that an object has itself.
func kindOf(obj Object) schema.GroupVersionKind {
	if obj, ok := obj.(runtime.Object); ok {
		return obj.GetObjectKind().GroupVersionKind()
	}
	return schema.GroupVersionKind{}
}

// dynamicDecoder decodes into maps.
type dynamicDecoder struct {
	gvk     schema.GroupVersionKind
	table   *Table
	sharing Sharing
	shared  *dedup.MapDecoder
}

func newDynamicDecoder(gvk schema.GroupVersionKind, table *Table, sharing Sharing) *dynamicDecoder {
	shared := dedup.NewMapDecoder(table, gvk, sharing, nil)
	return &dynamicDecoder{gvk: gvk, table: table, sharing: sharing, shared: shared}
}

// without leaves fields out. Only those of the metadata are checked; the others are unknown.
func (d *dynamicDecoder) without(paths []string) error {
	drop, err := fieldpath.Parse(paths)
	if err != nil {
		return err
	}
	d.shared = dedup.NewMapDecoder(d.table, d.gvk, d.sharing, drop)
	return drop.CheckField("metadata", reflect.TypeFor[metav1.ObjectMeta]())
}

// ofItem returns the kind of an item without one, as those of built-in types are.
func (d *dynamicDecoder) ofItem(list schema.GroupVersionKind) schema.GroupVersionKind {
	kind, ok := strings.CutSuffix(list.Kind, "List")
	if d.gvk.Kind != "" || !ok || list.GroupVersion() != d.gvk.GroupVersion() {
		return d.gvk
	}
	return list.GroupVersion().WithKind(kind)
}

func (d *dynamicDecoder) wants() schema.GroupVersionKind  { return d.gvk }
func (d *dynamicDecoder) setKind(schema.GroupVersionKind) {} // they come with it
func (d *dynamicDecoder) accept(bool, bool) string        { return jsonType }

func (d *dynamicDecoder) stats() DecodingStats {
	return decodingStats(d.shared)
}

func decodingStats(d interface {
	Stats() dedup.DecoderStats
	Shares() error
}) DecodingStats {
	counts := d.Stats()
	return DecodingStats{
		Shared: counts.Shared, Unshared: counts.Generated, Rejected: counts.Rejected,
		WhyUnshared: d.Shares(),
	}
}

func (d *dynamicDecoder) json(
	data []byte, list schema.GroupVersionKind,
) (*unstructured.Unstructured, error) {
	object, err := d.shared.Unmarshal(data)
	if err != nil {
		return nil, fmt.Errorf("%w object in JSON: %w", ErrMalformed, undecodable(err))
	}
	if object == nil {
		return nil, fmt.Errorf("%w: an object was expected, received %s",
			ErrMalformed, summary(data))
	}
	obj := &unstructured.Unstructured{Object: object}
	got := obj.GroupVersionKind()
	if got.Kind == "" && !list.Empty() {
		if kind := d.ofItem(list); kind.Kind != "" {
			obj.SetGroupVersionKind(kind)
			return obj, nil
		}
	}
	if d.gvk.Kind != "" && got != d.gvk || got.GroupVersion() != d.gvk.GroupVersion() {
		return nil, WrongKind(got, d.gvk)
	}
	return obj, nil
}

func (d *dynamicDecoder) protobuf([]byte) (*unstructured.Unstructured, error) {
	return nil, errNotAskedFor
}
