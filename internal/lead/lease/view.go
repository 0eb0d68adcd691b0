package lease

import coordinationv1 "k8s.io/api/coordination/v1"

// Observation is the state of a Lease at a version.
type Observation struct {
	Name    string
	Lease   *coordinationv1.Lease // nil: there is none
	Version string
	// Deleted reports that an event has shown the end of the Lease. Without it, other Leases of the
	// name may have come and gone since the last observation.
	Deleted bool
}

// View puts observations of Leases in order: those of lists, reads, events and answers to writes,
// of which one may arrive after a later one. The lock of its owner guards it.
type View struct {
	// Put takes an observation that is not older than the last one of the Lease.
	Put func(Observation)

	newest   string            // the newest version of all Leases
	versions map[string]string // the last one of each Lease
}

// Newest returns the newest version of all Leases.
func (v *View) Newest() string { return v.newest }

// Version returns the version of the last observation of a Lease, "" without one.
func (v *View) Version(name string) string { return v.versions[name] }

// Event takes the Lease of an event, or of the answer to a write.
func (v *View) Event(l *coordinationv1.Lease, deleted bool) {
	if IsOlder(l.ResourceVersion, v.versions[l.Name]) {
		return
	}
	o := Observation{l.Name, l, l.ResourceVersion, deleted}
	if deleted {
		o.Lease = nil
	}
	v.put(o)
}

// Read takes the answer to a consistent read of a Lease, nil if there is none. sentAt is Version
// when the read was sent: if that has not changed, the answer is newer, even if the server has lost
// versions.
func (v *View) Read(name string, l *coordinationv1.Lease, sentAt string) {
	isNewer := v.versions[name] == sentAt
	if l == nil && isNewer {
		v.put(Observation{Name: name, Version: sentAt})
	}
	if l != nil && (isNewer || !IsOlder(l.ResourceVersion, v.versions[name])) {
		v.put(Observation{Name: name, Lease: l, Version: l.ResourceVersion})
	}
}

// List takes a consistent list. sentAt is Newest when it was sent, as for Read. Those of the names
// that it lacks have no Lease.
func (v *View) List(list *coordinationv1.LeaseList, sentAt string, names map[string]bool) {
	isNewer := v.newest == sentAt
	listed := map[string]bool{}
	for i := range list.Items {
		l := &list.Items[i]
		listed[l.Name] = true
		if isNewer || !IsOlder(l.ResourceVersion, v.versions[l.Name]) {
			v.put(Observation{Name: l.Name, Lease: l, Version: l.ResourceVersion})
		}
	}
	for name := range names {
		if !listed[name] && (isNewer || !IsOlder(list.ResourceVersion, v.versions[name])) {
			v.put(Observation{Name: name, Version: list.ResourceVersion})
		}
	}
	if isNewer {
		v.newest = list.ResourceVersion
	}
}

func (v *View) put(o Observation) {
	if o.Version != "" && !IsOlder(o.Version, v.newest) {
		v.newest = o.Version
	}
	if v.versions == nil {
		v.versions = map[string]string{}
	}
	v.versions[o.Name] = o.Version
	v.Put(o)
}
