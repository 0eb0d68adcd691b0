package shard

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/tidings-go/tidings/internal/lease"
	"github.com/tidings-go/tidings/internal/slot"
	"github.com/tidings-go/tidings/shard/internal/protocol"
)

// contents holds the entries of a map: one for each slot, then one for each controller. The name of
// a free entry is "".
type contents struct {
	entries     []protocol.Entry
	controllers []string
}

// name returns the number of a slot, or the name of a controller.
func (c contents) name(i int) string {
	if i < slot.Count {
		return strconv.Itoa(i)
	}
	return c.controllers[i-slot.Count]
}

// kinds returns the numbers of the slots, and of the controllers.
func (c contents) kinds() (kinds [2][]int) {
	for i := range c.entries {
		if i < slot.Count {
			kinds[0] = append(kinds[0], i)
		} else if !c.isFree(i) {
			kinds[1] = append(kinds[1], i)
		}
	}
	return kinds
}

// isFree reports whether an entry belongs to no slot and to no controller.
func (c contents) isFree(i int) bool { return i >= slot.Count && c.controllers[i-slot.Count] == "" }

// names returns the entries of a set as text: slots with ranges, then the names of controllers and
// the other names.
func (c contents) names(s slot.Set, others ...string) string {
	var names []string
	slots := slotsOf(s)
	if !slots.IsEmpty() {
		names = append(names, slots.String())
	}
	for i := range s.Minus(slots).Slots() {
		names = append(names, c.name(i))
	}
	return strings.Join(append(names, others...), ",")
}

// document is a map in JSON. Each member and each set of versions is listed once, and entries
// refer to it by number.
type document struct {
	// Format is 0. A map with another one was written by a later version of this package.
	Format int `json:"format,omitzero"`

	Members  []protocol.ID       `json:"members"`
	Versions []map[string]string `json:"versions,omitempty"`
	// Controllers are the names of the entries that follow those of the slots; "" for a free entry.
	Controllers []string `json:"controllers,omitempty"`
	// Each entry has the owner, the epoch, the next owner, 1 if the next owner is ready, and the
	// versions. Members and versions count from 1, and 0 means none. Zeros at the end are left out.
	Entries [][]uint64 `json:"entries"`
}

// maxText is the length in bytes above which a map is shortened. A server stores 256 KiB of
// annotations.
const maxText = 128 << 10

// encode returns the text of a map. A map that is too large gets the newest versions for all entries.
// The server has reached them, so that a wait for them is hardly longer. If that is too large as well,
// as of many types in many namespaces, next owners ask the server.
func encode(c contents) (string, error) {
	text, err := marshal(c)
	if err == nil && len(text) > maxText {
		text, err = marshal(c.withNewestVersions())
	}
	if err == nil && len(text) > maxText {
		c.entries = slices.Clone(c.entries)
		for i := range c.entries {
			c.entries[i].Versions = nil
		}
		text, err = marshal(c)
	}
	return text, err
}

// withNewestVersions returns a map in which each entry with versions has the newest versions of
// all entries.
func (c contents) withNewestVersions() contents {
	newest := map[string]string{}
	for _, e := range c.entries {
		for part, version := range e.Versions {
			if known, ok := newest[part]; !ok || !lease.IsOlder(version, known) {
				newest[part] = version
			}
		}
	}
	c.entries = slices.Clone(c.entries)
	for i := range c.entries {
		if e := &c.entries[i]; e.Versions != nil {
			e.Versions = newest
		}
	}
	return c
}

func marshal(c contents) (string, error) {
	entries := c.entries
	d := document{Entries: make([][]uint64, len(entries)), Controllers: c.controllers}
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

// decode returns the entries of a map. A map that cannot be read is an error: no member may act on
// it.
func decode(l *coordinationv1.Lease) (c contents, err error) {
	var d document
	text := l.Annotations[entriesAnnotation]
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		return c, fmt.Errorf("the map of the group, lease %s/%s, cannot be read: %w", l.Namespace,
			l.Name, err)
	}
	if d.Format != 0 {
		return c, fmt.Errorf("the map of the group, lease %s/%s, has the format %d of a later version of tidings",
			l.Namespace, l.Name, d.Format)
	}
	if want := slot.Count + len(d.Controllers); len(d.Entries) != want || want > slot.Entries {
		return c, fmt.Errorf("the map of the group, lease %s/%s, has %d entries of slots and %d controllers",
			l.Namespace, l.Name, len(d.Entries), len(d.Controllers))
	}
	for i, name := range d.Controllers {
		if name != "" && slices.Contains(d.Controllers[:i], name) {
			return c, fmt.Errorf("the map of the group, lease %s/%s, has two entries of the controller %s",
				l.Namespace, l.Name, name)
		}
	}
	c = contents{make([]protocol.Entry, len(d.Entries)), d.Controllers}
	for i, given := range d.Entries {
		var fields [5]uint64
		copy(fields[:], given)
		if max(fields[0], fields[2]) > uint64(len(d.Members)) || fields[4] > uint64(len(d.Versions)) {
			return contents{}, fmt.Errorf("the map of the group, lease %s/%s, has a wrong entry %d", l.Namespace,
				l.Name, i)
		}
		e := &c.entries[i]
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
	return c, nil
}
