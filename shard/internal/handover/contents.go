package handover

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/tidings-go/tidings/internal/engine/slot"
)

// Map is the contents of a map: an entry for each slot, then one for each controller. The name of a
// free entry is "".
type Map struct {
	Entries     []Entry
	Controllers []string
}

// document is a map in JSON, by columns. The identities of the members follow it, in an array.
type document struct {
	Parts       []string `json:"parts,omitempty"`
	Controllers []string `json:"controllers,omitempty"`
	// Owners and Next have a number for each entry. 0 is no member. 1 is the next member of the
	// array that no number before has named. n + 1 is the nth member of the array, which was named
	// before. In large groups most numbers are 1, which packs well.
	Owners []int    `json:"owners"`
	Next   []int    `json:"next"`
	Ready  []int    `json:"ready,omitempty"` // entries
	Epochs []uint64 `json:"epochs"`
	Left   []Left   `json:"left"`
	// Weights have two digits: see Weigh.
	Weights []uint32 `json:"weights"`
	// Known has the versions of the entries that have any.
	Known []known `json:"known,omitempty"`
}

// numbers give members their numbers in a document.
type numbers struct {
	members []ID
	known   map[ID]int
	seen    int
}

func (n *numbers) of(id ID) int {
	number, ok := n.known[id]
	if !ok {
		n.members = append(n.members, id)
		n.known[id], number = len(n.members)+1, 1
	}
	return number
}

// member returns the member with a number, and reports whether there is one.
func (n *numbers) member(number int) (ID, bool) {
	switch {
	case number == 0:
		return "", true
	case number == 1:
		n.seen++
		number = n.seen + 1
	}
	if number < 2 || number-2 >= len(n.members) {
		return "", false
	}
	return n.members[number-2], true
}

// known has the versions of one entry, in the order of document.Parts. "" is no version.
type known struct {
	Entry    int      `json:"e"`
	Versions []string `json:"v"`
}

// format is the first field of a map's text. A member that reads another one does not act on the
// map.
const format = "1"

// mostText is the length in bytes above which a map is written without versions: a server stores
// 256 KiB of annotations. Next owners then ask the server. mostJSON bounds what a text may unpack
// to.
const (
	mostText = 128 << 10
	mostJSON = 16 << 20
)

// ErrFormat is the error of a map of another version of this package.
var ErrFormat = errors.New("the map of the group has a format that this version does not know: " +
	"use a version of tidings that knows it, or delete the map's Lease once all members have ended")

// Encode returns the text of a map: its format, a space, and JSON as base64 of gzip, as Helm stores
// its releases. To read it: cut -d' ' -f2 | base64 -d | gunzip.
func (m Map) Encode() (string, error) {
	text, err := m.encode()
	if err == nil && len(text) > mostText {
		m.Entries = slices.Clone(m.Entries)
		for i := range m.Entries {
			if e := &m.Entries[i]; e.Left == Known {
				e.Left, e.Versions = Unknown, nil
			}
		}
		text, err = m.encode()
	}
	return text, err
}

func (m Map) encode() (string, error) {
	packed := &bytes.Buffer{}
	w, err := gzip.NewWriterLevel(packed, gzip.BestCompression)
	if err == nil {
		d, members := m.document()
		// Names have other letters than numbers: a block of their own saves a tenth.
		err = errors.Join(json.NewEncoder(w).Encode(d), w.Flush(),
			json.NewEncoder(w).Encode(members), w.Close())
	}
	return format + " " + base64.StdEncoding.EncodeToString(packed.Bytes()), err
}

func (m Map) document() (d document, members []ID) {
	d.Controllers = m.Controllers
	n, parts := numbers{known: map[ID]int{"": 0}}, map[string]bool{}
	for i, e := range m.Entries {
		d.Owners, d.Next = append(d.Owners, n.of(e.Owner)), append(d.Next, n.of(e.Next))
		d.Epochs, d.Left = append(d.Epochs, e.Epoch), append(d.Left, e.Left)
		d.Weights = append(d.Weights, e.Weight)
		if e.Ready {
			d.Ready = append(d.Ready, i)
		}
		for part := range e.Versions {
			parts[part] = true
		}
	}
	d.Parts = slices.Sorted(maps.Keys(parts))
	for i, e := range m.Entries {
		if len(e.Versions) == 0 {
			continue
		}
		k := known{Entry: i}
		for _, part := range d.Parts {
			k.Versions = append(k.Versions, e.Versions[part])
		}
		d.Known = append(d.Known, k)
	}
	return d, n.members
}

// Decode returns the map of a text. No member may act on a map that cannot be read.
func Decode(text string) (m Map, err error) {
	version, rest, _ := strings.Cut(text, " ")
	if version != format {
		return m, fmt.Errorf("%w: it has format %.20q, and this version knows %q",
			ErrFormat, version, format)
	}
	var d document
	packed, err := gzip.NewReader(base64.NewDecoder(base64.StdEncoding, strings.NewReader(rest)))
	var n numbers
	if err == nil {
		decoder := json.NewDecoder(io.LimitReader(packed, mostJSON))
		err = errors.Join(decoder.Decode(&d), decoder.Decode(&n.members))
	}
	if err == nil {
		m, err = d.contents(n)
	}
	if err != nil {
		return Map{}, fmt.Errorf("the map of the group cannot be read: %w", err)
	}
	return m, nil
}

func (d document) contents(members numbers) (m Map, err error) {
	n := slot.Count + len(d.Controllers)
	lengths := []int{len(d.Owners), len(d.Epochs), len(d.Weights), len(d.Next), len(d.Left)}
	if n > slot.Entries || slices.ContainsFunc(lengths, func(l int) bool { return l != n }) {
		return m, fmt.Errorf("it has %d entries, and %d controllers", len(d.Owners), len(d.Controllers))
	}
	for i, name := range d.Controllers {
		if name != "" && slices.Contains(d.Controllers[:i], name) {
			return m, fmt.Errorf("it has two entries of the controller %s", name)
		}
	}
	m = Map{Entries: make([]Entry, n), Controllers: d.Controllers}
	for i := range m.Entries {
		owner, ok1 := members.member(d.Owners[i])
		next, ok2 := members.member(d.Next[i])
		if !ok1 || !ok2 || d.Left[i] > Reached {
			return m, fmt.Errorf("its entry %d is wrong", i)
		}
		m.Entries[i] = Entry{
			Owner: owner, Epoch: d.Epochs[i], Next: next, Left: d.Left[i], Weight: d.Weights[i],
		}
		if d.Left[i] == Known {
			m.Entries[i].Versions = map[string]string{}
		}
	}
	for _, i := range d.Ready {
		if i < 0 || i >= n {
			return m, fmt.Errorf("it has no entry %d, and that is ready", i)
		}
		m.Entries[i].Ready = true
	}
	for _, k := range d.Known {
		if k.Entry < 0 || k.Entry >= n || d.Left[k.Entry] != Known || len(k.Versions) != len(d.Parts) {
			return m, fmt.Errorf("its versions of entry %d are wrong", k.Entry)
		}
		for p, version := range k.Versions {
			if version != "" {
				m.Entries[k.Entry].Versions[d.Parts[p]] = version
			}
		}
	}
	return m, nil
}

// Weigh returns the weight of an entry with a number of objects: one more, with two digits, so that
// the map stays small.
func Weigh(objects int) uint32 {
	weight, unit := uint32(min(objects, 1e9))+1, uint32(1)
	for weight/unit >= 100 {
		unit *= 10
	}
	return (weight + unit/2) / unit * unit
}

// IsAfter reports whether a map lacks an entry, or a change of an owner, that was seen in this one
// before: it is a restored backup.
func (m Map) IsAfter(other Map) bool {
	for i, e := range m.Entries {
		if i >= len(other.Entries) || e.Epoch > other.Entries[i].Epoch {
			return true
		}
	}
	return false
}

// List updates the controllers of a map to those that live members can lead, in the order of
// offered. The entry of another controller becomes free once its owner has ended. The result shares
// no memory with the map if it has changed.
func (m Map) List(offered []string, peers map[ID]Peer) (_ Map, changed bool) {
	next, ended := m, EndedOf(peers)
	change := func() {
		if !changed {
			next, changed = Map{slices.Clone(m.Entries), slices.Clone(m.Controllers)}, true
		}
	}
	for i, name := range m.Controllers {
		e := &m.Entries[slot.Count+i]
		if name != "" && !slices.Contains(offered, name) && isFree(e, ended) {
			change()
			next.Controllers[i], next.Entries[slot.Count+i] = "", Entry{Epoch: e.Epoch + 1}
		}
	}
	for _, name := range offered {
		switch i := slices.Index(next.Controllers, ""); {
		case slices.Contains(next.Controllers, name):
		case i >= 0:
			change()
			next.Controllers[i] = name
		case len(next.Controllers) < slot.MaxControllers:
			change()
			next.Controllers, next.Entries = append(next.Controllers, name), append(next.Entries, Entry{})
		}
	}
	return next, changed
}
