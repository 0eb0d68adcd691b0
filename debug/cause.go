package debug

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tidings-go/tidings/internal/see/format"
	"github.com/tidings-go/tidings/internal/see/gather"
)

// Cause is a problem, or several with one cause.
type Cause struct {
	// What is a sentence that describes it.
	What  string `json:"what"`
	Level Level  `json:"level"`
	// Since is the time at which its first problem began, zero if that is not known.
	Since time.Time `json:"since,omitzero"`
	// Informers, Controllers and Others are the numbers of these that it concerns, and Keys the
	// number of keys that it holds up.
	Informers   int       `json:"informers,omitzero"`
	Controllers int       `json:"controllers,omitzero"`
	Others      int       `json:"others,omitzero"`
	Keys        int       `json:"keys,omitzero"`
	Problems    []Problem `json:"problems"`
}

// Concerns returns the numbers of what it concerns as text.
func (c Cause) Concerns() string {
	var parts []string
	for _, part := range []struct {
		n            int
		one, several string
	}{
		{c.Informers, "informer", "informers"}, {c.Controllers, "controller", "controllers"},
		{c.Others, "other", "others"}, {c.Keys, "key", "keys"},
	} {
		if part.n > 0 {
			parts = append(parts, format.Counted(part.n, part.one, part.several))
		}
	}
	return strings.Join(parts, ", ")
}

// IsOne reports whether it is one problem.
func (c Cause) IsOne() bool { return len(c.Problems) == 1 }

// Help returns the heading of the documentation of its most urgent problem.
func (c Cause) Help() string { return c.Problems[0].Help }

// setCauses completes the causes of problems: a problem that waits for informers has the cause of
// the first one of them that has one, and a failure to reach the server has that of the informers.
func setCauses(problems []Problem, informers []gather.Informer) {
	of := map[string]string{}   // by the name of an informer
	reasons := map[string]int{} // the informers by cause
	for _, p := range problems {
		if p.informer != "" && p.Cause != "" && of[p.informer] == "" {
			of[p.informer] = p.Cause
			reasons[p.Cause]++
		}
	}
	for i, p := range problems {
		for _, waited := range p.waitsFor {
			if cause := of[longestPrefix(waited, informers)]; cause != "" {
				problems[i].Cause = cause
				break
			}
		}
		if p.informer == "" && (p.Cause == string(noAnswer) || p.Cause == string(serverError)) &&
			reasons[p.Cause] == 0 {
			for _, other := range []failure{noAnswer, serverError} { // an outage has both
				if reasons[string(other)] > 0 {
					problems[i].Cause = string(other)
				}
			}
		}
	}
}

// longestPrefix returns the name of the informer that a text begins with, as in "pods.v1 in
// namespace a".
func longestPrefix(text string, informers []gather.Informer) (name string) {
	longest := 0
	for _, i := range informers {
		n := len(i.Health.Name)
		if n > longest && (text == i.Health.Name || strings.HasPrefix(text, i.Health.Name+" ")) {
			name, longest = i.Name, n
		}
	}
	return name
}

// causesOf returns the causes of sorted problems, by level and age.
func causesOf(problems []Problem) []Cause {
	causes, at := []Cause{}, map[string]int{}
	for _, p := range problems {
		n, known := at[p.Cause]
		if !known || p.Cause == "" {
			n, at[p.Cause] = len(causes), len(causes)
			causes = append(causes, Cause{Level: p.Level, Since: p.Since})
		}
		c := &causes[n]
		c.Problems = append(c.Problems, p)
		if p.Level.rank() < c.Level.rank() {
			c.Level = p.Level
		}
		if c.Since.IsZero() || !p.Since.IsZero() && p.Since.Before(c.Since) {
			c.Since = p.Since
		}
		c.Keys += p.Keys
	}
	for i := range causes {
		causes[i].count()
	}
	slices.SortStableFunc(causes, func(a, b Cause) int {
		return byUrgency(a.Level, b.Level, a.Since, b.Since)
	})
	return causes
}

// count counts what a cause concerns.
func (c *Cause) count() {
	informers, controllers, others := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, p := range c.Problems {
		switch {
		case p.informer != "":
			informers[p.informer] = true
		case p.controller != "":
			controllers[p.controller] = true
		default:
			others[p.Of] = true
		}
	}
	c.Informers, c.Controllers, c.Others = len(informers), len(controllers), len(others)
	c.What = c.Problems[0].Cause
	if len(c.Problems) == 1 {
		c.What = c.Problems[0].Of + " " + c.Problems[0].What
	}
}

// byUrgency compares levels and the times since when, the oldest first, and unknown times last.
func byUrgency(a, b Level, since, other time.Time) int {
	if order := cmp.Compare(a.rank(), b.rank()); order != 0 {
		return order
	}
	switch {
	case since.IsZero() == other.IsZero():
		return since.Compare(other)
	case since.IsZero():
		return 1
	}
	return -1
}

// problems returns the present problems of all sources, sorted by level and age.
func (h *Handler) problems(all *gather.Figures, now time.Time) []Problem {
	found := []Problem{}
	for _, i := range all.Informers {
		found = append(found, h.informerProblems(i, now)...)
	}
	for _, c := range all.Controllers {
		found = append(found, controllerProblems(c, now)...)
	}
	for _, e := range all.Elections {
		found = append(found, electionProblems(e)...)
	}
	for _, g := range all.Groups {
		found = append(found, groupProblems(g.Health, now)...)
	}
	for _, name := range slices.Sorted(maps.Keys(all.Skipped)) {
		found = append(found, Problem{
			Of: "controller " + name, Link: "./", controller: name, Level: LevelWaiting,
			What: "is skipped: " + all.Skipped[name], Help: helpOf(topicSkipped),
		})
	}
	setCauses(found, all.Informers)
	return sorted(found)
}

// sorted sorts problems by level and age.
func sorted(all []Problem) []Problem {
	slices.SortStableFunc(all, func(a, b Problem) int {
		return byUrgency(a.Level, b.Level, a.Since, b.Since)
	})
	return all
}
