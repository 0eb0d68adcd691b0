package shard

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"math"
	"strconv"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidings-go/tidings/internal/slot"
)

const (
	prefix = "tidings-go.github.io/"
	// groupLabel is a label of all Leases of a group, with its name.
	groupLabel = prefix + "shard-group"
	// The annotations of a member's Lease.
	generationAnnotation = prefix + "generation"
	joinedAnnotation     = prefix + "joined" // when the process joined first
	mapAnnotation        = prefix + "map"    // the UID of the map that the member acts on
	leavingAnnotation    = prefix + "leaving"
	servingAnnotation    = prefix + "serving" // the entries that are in order, in hex digits
	loadsAnnotation      = prefix + "loads"   // the loads above 0, by slot, in JSON
	// controllersAnnotation lists the controllers that the member can lead, in JSON.
	controllersAnnotation = prefix + "controllers"
	// entriesAnnotation is the annotation of the map's Lease.
	entriesAnnotation = prefix + "entries"
)

// maxLoad bounds the load of a slot in a Lease, so that sums are finite.
const maxLoad = 1e15

// record is the report of a member about itself, in its Lease.
type record struct {
	generation, mapUID string
	leaving            bool
	joined             time.Time // the first join, by the server's clock; zero in the first Lease
	serving            slot.Set
	loads              map[int]float64
	controllers        []string
}

// write writes the record into the annotations of a Lease.
func (r record) write(l *coordinationv1.Lease) {
	set := func(name, value string) { metav1.SetMetaDataAnnotation(&l.ObjectMeta, name, value) }
	set(generationAnnotation, r.generation)
	set(mapAnnotation, r.mapUID)
	if !r.joined.IsZero() {
		set(joinedAnnotation, r.joined.UTC().Format(time.RFC3339))
	}
	set(leavingAnnotation, strconv.FormatBool(r.leaving))
	var bytes []byte
	for _, word := range r.serving {
		bytes = binary.LittleEndian.AppendUint64(bytes, word)
	}
	set(servingAnnotation, hex.EncodeToString(bytes))
	if text, err := json.Marshal(r.loads); err == nil { // fails for an infinite load: the old loads stay
		set(loadsAnnotation, string(text))
	}
	if text, err := json.Marshal(r.controllers); err == nil && len(r.controllers) > 0 {
		set(controllersAnnotation, string(text))
	} else {
		delete(l.Annotations, controllersAnnotation)
	}
}

// readRecord returns the report of a member about itself. Annotations that cannot be read are
// left out: a member of another version may have written them.
func readRecord(l *coordinationv1.Lease) (r record) {
	r.generation, r.mapUID = l.Annotations[generationAnnotation], l.Annotations[mapAnnotation]
	r.leaving = l.Annotations[leavingAnnotation] == "true"
	if joined, err := time.Parse(time.RFC3339, l.Annotations[joinedAnnotation]); err == nil {
		r.joined = joined
	}
	if bytes, err := hex.DecodeString(l.Annotations[servingAnnotation]); err == nil {
		for i, b := range bytes[:min(len(bytes), slot.Entries/8)] {
			r.serving[i/8] |= uint64(b) << (i % 8 * 8)
		}
	}
	if json.Unmarshal([]byte(l.Annotations[loadsAnnotation]), &r.loads) != nil {
		r.loads = nil
	}
	for n, load := range r.loads {
		r.loads[n] = min(max(load, 0), maxLoad)
	}
	if json.Unmarshal([]byte(l.Annotations[controllersAnnotation]), &r.controllers) != nil {
		r.controllers = nil
	}
	return r
}

// round keeps two digits of a load, so that a record stays short.
func round(load float64) float64 {
	if load <= 0 || math.IsInf(load, 0) || math.IsNaN(load) {
		return 0
	}
	unit := math.Pow(10, math.Floor(math.Log10(load))-1)
	return math.Round(load/unit) * unit
}
