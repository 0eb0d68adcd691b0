package debug

import (
	"fmt"
	"strings"
	"time"

	"github.com/tidings-go/tidings/controller/election"
	"github.com/tidings-go/tidings/shard"
)

// Problem is a present problem.
type Problem struct {
	// Of is the informer, handler, controller or Lease, and Link its page.
	Of   string `json:"of"`
	Link string `json:"link"`
	// What is a sentence that describes it.
	What string `json:"what"`
	// Since is the time at which it began, zero if that is not known.
	Since time.Time `json:"since,omitzero"`
	// Level says how urgent it is.
	Level Level `json:"level"`
	// Cause is the sentence that all problems with its cause have; "" if it is its own cause.
	Cause string `json:"cause,omitempty"`
	// Keys is the number of keys that it holds up.
	Keys int `json:"keys,omitzero"`
	// Help is the address of its heading in the documentation.
	Help string `json:"help,omitempty"`
	// Commands are texts to copy, such as the role that is missing.
	Commands []Command `json:"commands,omitempty"`

	informer, controller string   // the names of these, "" for others
	waitsFor             []string // the informers that it waits for
}

// finder collects the problems of one thing. Fields of the pattern are in each of them.
type finder struct {
	pattern Problem
	found   []Problem
}

// add adds a problem, and returns it for its other fields until the next one is added.
func (f *finder) add(level Level, topic string, since time.Time, format string, args ...any) *Problem {
	p := f.pattern
	p.Level, p.Since, p.What = level, since, fmt.Sprintf(format, args...)
	p.Help = helpOf(topic)
	f.found = append(f.found, p)
	return &f.found[len(f.found)-1]
}

// problemsPage is the page of the documentation that has a heading for each problem.
const problemsPage = "https://github.com/tidings-go/tidings/blob/main/docs/problems.md"

// helpOf returns the address of a heading in the documentation.
func helpOf(topic string) string {
	return problemsPage + "#" + strings.ReplaceAll(strings.ToLower(topic), " ", "-")
}

// mostLate is the time from which late slots are a problem.
const mostLate = 10 * time.Minute

func electionProblems(e election.Health) []Problem {
	f := finder{pattern: Problem{Of: "lease " + e.Lease, Link: "./"}}
	if e.Polling != nil {
		f.add(LevelWarning, topicPolling, e.LastErrorAt,
			"is read now and then, as it cannot be watched: %v", e.Polling)
	}
	if e.State == election.Standby && e.Holder == "" {
		what := "has no holder"
		if e.LastError != nil {
			what += ": " + e.LastError.Error()
		}
		f.add(LevelError, topicNoHolder, e.LastErrorAt, "%s", what).
			Cause = string(failureOf(e.LastError))
	}
	return f.found
}

func groupProblems(h shard.Health, now time.Time) []Problem {
	f := finder{pattern: Problem{Of: "group " + h.Lease, Link: groupLink(h.Lease)}}
	if h.State == shard.Stopped {
		return nil
	}
	if h.Map != nil {
		f.add(LevelError, topicMap, time.Time{}, "%v", h.Map).Cause = string(failureOf(h.Map))
	}
	if h.UncoveredFor > h.Tolerated {
		for _, uncovered := range []struct{ what, names string }{
			{"has slots or controllers that nobody owns", h.Nobody},
			{"has slots or controllers whose owners are not ready", h.NotReady},
		} {
			if uncovered.names != "" {
				f.add(LevelError, topicUncovered, now.Add(-h.UncoveredFor),
					"%s: %s", uncovered.what, uncovered.names)
			}
		}
	}
	if h.LateFor > mostLate {
		f.add(LevelWarning, topicLate, now.Add(-h.LateFor),
			"is late for some slots or controllers, and nothing moves because of it: %s", h.Late)
	}
	if h.State == shard.Joining && h.LastError != nil {
		f.add(LevelError, topicJoining, h.LastErrorAt, "cannot be joined: %v", h.LastError).
			Cause = string(failureOf(h.LastError))
	}
	if h.Polling != nil {
		f.add(LevelWarning, topicPolling, time.Time{},
			"is read now and then, as its Leases cannot be watched: %v", h.Polling)
	}
	return f.found
}

// The topics are headings of docs/problems.md, and so are the failures.
const (
	topicFailing    = "An informer fails for another reason"
	topicStopped    = "An informer has stopped"
	topicListing    = "First lists run"
	topicSilent     = "An informer receives nothing"
	topicHandler    = "A handler is behind"
	topicObjects    = "Objects are left out"
	topicWaiting    = "A controller waits for its caches"
	topicEnded      = "A controller has ended"
	topicSkipped    = "A controller is skipped"
	topicQueue      = "A queue does not move"
	topicQueued     = "Keys wait in a queue"
	topicBackingOff = "Keys wait after an error"
	topicHeldBack   = "Keys are held back"
	topicLongCall   = "A call does not return"
	topicRewrites   = "Fights and loops"
	topicMapping    = "A function has failed"
	topicNoHolder   = "A Lease has no holder"
	topicPolling    = "A Lease cannot be watched"
	topicMap        = "The map of a group cannot be read"
	topicUncovered  = "Slots are not covered"
	topicLate       = "Slots are late"
	topicJoining    = "A group cannot be joined"
)
