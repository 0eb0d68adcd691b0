package shard

import (
	"cmp"
	"fmt"
	"log/slog"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/tidings-go/tidings/internal/lead/lease"
)

const (
	// defaultGrace is below the 30 s that a kubelet waits by default.
	defaultGrace = 25 * time.Second
	// generationVariable is the variable of the environment that names the program's version. A
	// manifest sets it from the label of the pod with that meaning.
	generationVariable = "POD_TEMPLATE_HASH"
	// maxName is the length of the longest Options.Name. Names of Leases begin with that name,
	// before the identity.
	maxName = 63
	// longestTime is the longest Options.Grace. Sums of longer ones overflow.
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
	// Generation names the version of the program, in no order. While members of two generations
	// live, entries move only from members that leave, to members of other generations. "" is the
	// variable POD_TEMPLATE_HASH, else the revision that the program was built from.
	Generation string
	// Duration is the time for which others wait for a member that does not renew. It counts in
	// whole seconds; 0 is 15 s, the minimum 1 s.
	Duration time.Duration
	// Renew is the time between renewals; 0 is a third of Duration, the minimum 100 ms, the maximum
	// two fifths.
	Renew time.Duration
	// Grace is the time from the begin of an orderly end to its deadline: others fill their caches
	// and take what this member owns. At two thirds of it, or when no member can take anything, the
	// contexts of calls that still run end. 0 is 25 s. It is to be shorter than the
	// terminationGracePeriodSeconds of the pod, and one and a half times as long as the list of the
	// largest type.
	Grace time.Duration
	// Logger receives lines about memberships, moves and failures; nil is slog.Default().
	Logger *slog.Logger
}

// complete returns the options with their defaults, or an error that names a field.
func (o Options) complete() (Options, error) {
	times := o.times().Complete(3)
	o.Duration, o.Renew = times.Duration, times.Renew
	o.Grace = cmp.Or(o.Grace, defaultGrace)
	o.Generation = cmp.Or(o.Generation, os.Getenv(generationVariable), revision())
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
	if o.Grace < 0 || o.Grace > longestTime {
		return fmt.Errorf("shard: Options.Grace is %v: give a positive time of at most %v, or 0",
			o.Grace, longestTime)
	}
	return o.times().Check("shard: Options")
}

func (o Options) times() lease.Times { return lease.Times{Duration: o.Duration, Renew: o.Renew} }

// revision returns the revision that the program was built from, "" if it is not known.
func revision() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return s.Value
		}
	}
	return ""
}
