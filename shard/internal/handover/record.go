package handover

import (
	"encoding/json"
	"fmt"
)

// Record is the report of a member about itself, in an annotation of its Lease.
type Record struct {
	// Name is the name of the Lease. Only a Lease that has its own name here is ever deleted.
	Name string `json:"name"`
	// Generation names the version of the program.
	Generation string `json:"generation,omitzero"`
	// Map is the UID of the map that the member acts on, "" before it has seen one.
	Map   string `json:"map,omitzero"`
	State State  `json:"state"`
	// Refused reports that the server refuses the member's writes of the map.
	Refused bool `json:"refused,omitzero"`
	// Controllers are those that it can lead as a whole, and Lacks those, of all its controllers,
	// that it cannot serve at present.
	Controllers []string `json:"controllers,omitempty"`
	Lacks       []string `json:"lacks,omitempty"`
	// Weights has the entries that it has opened and calls for, and Late those of them with a key
	// that waits for long. Reasons tell why others that it owns are not open.
	Weights map[int]uint32   `json:"weights,omitempty"`
	Late    []int            `json:"late,omitempty"`
	Reasons map[string][]int `json:"reasons,omitempty"`
}

// Encode returns the record as text.
func (r Record) Encode() (string, error) {
	text, err := json.Marshal(r)
	return string(text), err
}

// DecodeRecord returns the record of a text. A text of a later version may have more fields.
func DecodeRecord(text string) (r Record, err error) {
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return Record{}, fmt.Errorf("the record of a member cannot be read: %w", err)
	}
	return r, nil
}
