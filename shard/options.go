package shard

import (
	"cmp"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/tidings-go/tidings/internal/lease"
)

const (
	defaultHandOver = 30 * time.Second
	// maxName is the length of the longest Options.Name. Names of Leases begin with that name,
	// before the identity.
	maxName = 63
	// longestTime is the longest Options.Grace and HandOver. Sums of longer ones overflow.
	longestTime = 365 * 24 * time.Hour
)

// Options name a group, and set the times and the identity of a member. Namespace and Name are
// required.
type Options struct {
	// Namespace is the namespace of the group's Leases. Name is the name of the Lease with the
	// map, and the value of the label of all Leases.
	Namespace, Name string
	// Identity begins the names of this process's Leases; "" is the host's name. Each membership
	// adds a random part.
	Identity string
	// Generation names the version of the program, such as the hash of a pod template. While
	// members of two generations live, slots move to the newer one only, unless its members fail.
	Generation string
	// Duration is the time for which others wait for a member that does not renew. It counts in
	// whole seconds; 0 is 15 s, the minimum 1 s.
	Duration time.Duration
	// Renew is the time between renewals; 0 is a third of Duration, the minimum 100 ms, the maximum
	// two fifths.
	Renew time.Duration
	// HandOver is the time after which a hand-over that is not done is taken back; 0 is 30 s.
	HandOver time.Duration
	// Grace is the time for which a member that leaves waits until others have taken its slots, and
	// then again until the calls of the remaining slots have returned; 0 is 20 s. A member whose Lease
	// is lost waits only for its calls.
	Grace time.Duration
	// Logger receives lines about memberships, moves and failures; nil is slog.Default().
	Logger *slog.Logger
}

// complete returns the options with their defaults, or an error that names a field.
func (o Options) complete() (Options, error) {
	times := o.times().Complete(3)
	o.Duration, o.Renew = times.Duration, times.Renew
	o.Grace, o.HandOver = cmp.Or(o.Grace, lease.DefaultGrace), cmp.Or(o.HandOver, defaultHandOver)
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Identity == "" {
		host, err := lease.HostName("shard: Options")
		if err != nil {
			return o, err
		}
		o.Identity = strings.ToLower(host)
	}
	return o, o.check()
}

func (o Options) check() error {
	for field, value := range map[string]string{"Namespace": o.Namespace, "Name": o.Name} {
		if problems := validation.IsDNS1123Label(value); len(problems) > 0 {
			return fmt.Errorf("shard: Options.%s %.100q: %s", field, value, strings.Join(problems, "; "))
		}
	}
	if problems := validation.IsDNS1123Subdomain(o.Identity); len(problems) > 0 {
		return fmt.Errorf("shard: Options.Identity %.100q: %s", o.Identity, strings.Join(problems, "; "))
	}
	if len(o.Identity) > 253-2*maxName {
		return fmt.Errorf("shard: Options.Identity has %d bytes: give at most %d", len(o.Identity),
			253-2*maxName)
	}
	if o.Grace < 0 || o.HandOver < 0 || max(o.Grace, o.HandOver) > longestTime {
		return fmt.Errorf("shard: Options.Grace and HandOver are %v and %v: give positive times of at "+
			"most %v, or 0", o.Grace, o.HandOver, longestTime)
	}
	return o.times().Check("shard: Options")
}

func (o Options) times() lease.Times { return lease.Times{Duration: o.Duration, Renew: o.Renew} }
