package shard

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidings-go/tidings/internal/slot"
	"github.com/tidings-go/tidings/shard/internal/protocol"
)

const (
	prefix = "tidings-go.github.io/"
	// groupLabel is a label of all Leases of a group, with its name.
	groupLabel = prefix + "shard-group"
	// The annotations of a member's Lease.
	generationAnnotation = prefix + "generation"
	mapAnnotation        = prefix + "map" // the UID of the map that the member goes by
	leavingAnnotation    = prefix + "leaving"
	servingAnnotation    = prefix + "serving" // the slots that are in order, 64 hex digits
	loadsAnnotation      = prefix + "loads"   // by slot, those above 0, in JSON
	// entriesAnnotation is that of the map.
	entriesAnnotation = prefix + "entries"
)

// record is what a member says of itself in its Lease.
type record struct {
	generation, mapUID string
	leaving            bool
	serving            slot.Set
	loads              map[int]float64
}

// write writes the record into the annotations of a Lease.
func (r record) write(l *coordinationv1.Lease) {
	set := func(name, value string) { metav1.SetMetaDataAnnotation(&l.ObjectMeta, name, value) }
	set(generationAnnotation, r.generation)
	set(mapAnnotation, r.mapUID)
	set(leavingAnnotation, strconv.FormatBool(r.leaving))
	var bytes []byte
	for _, word := range r.serving {
		for shift := 0; shift < 64; shift += 8 {
			bytes = append(bytes, byte(word>>shift))
		}
	}
	set(servingAnnotation, hex.EncodeToString(bytes))
	if text, err := json.Marshal(r.loads); err == nil { // a load that is no number is left out
		set(loadsAnnotation, string(text))
	}
}

// readRecord returns what a member says of itself. What cannot be read is left out: a member of
// another version may have written it.
func readRecord(l *coordinationv1.Lease) (r record) {
	r.generation, r.mapUID = l.Annotations[generationAnnotation], l.Annotations[mapAnnotation]
	r.leaving = l.Annotations[leavingAnnotation] == "true"
	if bytes, err := hex.DecodeString(l.Annotations[servingAnnotation]); err == nil {
		for i, b := range bytes[:min(len(bytes), slot.Count/8)] {
			r.serving[i/8] |= uint64(b) << (i % 8 * 8)
		}
	}
	if json.Unmarshal([]byte(l.Annotations[loadsAnnotation]), &r.loads) != nil {
		r.loads = nil
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

// document is a map in JSON. Members and versions stand once, and entries refer to them.
type document struct {
	Members  []protocol.ID       `json:"members"`
	Versions []map[string]string `json:"versions,omitempty"`
	// Entries are owner, epoch, next owner, 1 if that is ready, and versions. Members and versions
	// count from 1, and 0 means none. Zeros at the end are left out.
	Entries [][]uint64 `json:"entries"`
}

// encode returns a map as its Lease holds it.
func encode(entries []protocol.Entry) (string, error) {
	d := document{Entries: make([][]uint64, len(entries))}
	member := func(id protocol.ID) uint64 {
		if id != "" && !slices.Contains(d.Members, id) {
			d.Members = append(d.Members, id)
		}
		return uint64(slices.Index(d.Members, id) + 1)
	}
	numbers := map[string]uint64{}
	for i, e := range entries {
		fields := []uint64{member(e.Owner), e.Epoch, member(e.Next), 0, 0}
		if e.Ready {
			fields[3] = 1
		}
		if e.Versions != nil {
			text := fmt.Sprint(e.Versions) // the keys are sorted
			if numbers[text] == 0 {
				d.Versions = append(d.Versions, e.Versions)
				numbers[text] = uint64(len(d.Versions))
			}
			fields[4] = numbers[text]
		}
		for len(fields) > 0 && fields[len(fields)-1] == 0 {
			fields = fields[:len(fields)-1]
		}
		d.Entries[i] = fields
	}
	text, err := json.Marshal(d)
	return string(text), err
}

// decode returns the entries of a map. A map that cannot be read is an error: nobody may act on it.
func decode(l *coordinationv1.Lease) ([]protocol.Entry, error) {
	var d document
	text := l.Annotations[entriesAnnotation]
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		return nil, fmt.Errorf("the map of the group, lease %s/%s, cannot be read: %w", l.Namespace,
			l.Name, err)
	}
	if len(d.Entries) != slot.Count {
		return nil, fmt.Errorf("the map of the group, lease %s/%s, has %d entries, not %d", l.Namespace,
			l.Name, len(d.Entries), slot.Count)
	}
	entries := make([]protocol.Entry, slot.Count)
	for i, given := range d.Entries {
		var fields [5]uint64
		copy(fields[:], given)
		if max(fields[0], fields[2]) > uint64(len(d.Members)) || fields[4] > uint64(len(d.Versions)) {
			return nil, fmt.Errorf("the map of the group, lease %s/%s, has a wrong entry %d", l.Namespace,
				l.Name, i)
		}
		e := &entries[i]
		e.Epoch, e.Ready = fields[1], fields[3] != 0
		if fields[0] > 0 {
			e.Owner = d.Members[fields[0]-1]
		}
		if fields[2] > 0 {
			e.Next = d.Members[fields[2]-1]
		}
		if fields[4] > 0 {
			e.Versions = d.Versions[fields[4]-1]
		}
	}
	return entries, nil
}
