package debug

import (
	"fmt"
	"html/template"
	"strings"
)

// explanations explain the columns and figures of the pages by their headings.
var explanations = map[string]string{
	"99 of 100 within":           "99 of 100 such times were not longer",
	"A second":                   "Notifications that the handler received in the last second",
	"After an error":             "Keys whose last call failed, and which wait for the next attempt",
	"Attempt":                    "The number of the next call since the last success",
	"Band":                       "The priority of a queued key: changes, then requeues, then background",
	"Behind by":                  "The age of the oldest notification that waits for the handler",
	"Calls a second":             "Calls of the reconcile function that ended in the last second",
	"Covered":                    "The part of the slots and controllers that a member works on",
	"Epoch":                      "Counts the owners of the entry",
	"Failures in a row":          "Lists and watches that failed since the last success",
	"Field manager of the calls": "The name under which the calls write",
	"Fields that differ": "The paths of the fields whose values differ before and " +
		"after the change",
	"Flow": "The keys that share the workers in turns with the keys of " +
		"other flows: by default, those of a namespace",
	"Folded":         "Updates that were replaced by later ones, because the handler was behind",
	"Held back":      "Keys that wait until a cache shows their own writes",
	"Holder":         "The replica that the Lease names",
	"Its last write": "The last write of the manager, which may have changed another field",
	"Lag":            "From the sending of an own write to the beginning of the call that it led to",
	"Last event": "The time since the last event, bookmark or list: servers " +
		"send a bookmark about once a minute",
	"Late for":     "The time for which keys of some slots have waited for long",
	"Left out":     "Objects that came and went before the handler saw them",
	"Lists":        "Lists that were begun: one for each namespace is normal",
	"Mean lag":     "From the sending of an own write until the cache held it",
	"Moving":       "Slots and controllers that are about to have another owner",
	"Next attempt": "The time at which the key is called again by itself",
	"Notifications a second": "Notifications that the handlers of the informer received in " +
		"the last second",
	"Oldest":                 "The key that has been queued for the longest time",
	"Operation":              "Apply, or Update for all other writes",
	"Own writes that showed": "Writes of calls that the cache of the informer has shown",
	"Owned":                  "Slots and controllers that this process owns",
	"Panics":                 "Calls that ended in a panic",
	"Queued":                 "Keys that wait for a worker",
	"Received": "Bytes of the answers to lists and watches, or notifications " +
		"that a handler received",
	"Renewals":            "Renewals of the Lease in the present term",
	"Running":             "Calls that run",
	"Serving":             "Slots and controllers for whose keys this process makes calls",
	"State":               "What it does at present; the states are explained below",
	"Term stays open for": "The time for which this process may write without another renewal",
	"Times":               "The number of changes of the field by the other side",
	"Took":                "The duration of the call",
	"Transitions":         "The number of holders that the Lease has had",
	"Uncovered for":       "The time for which nobody has worked on some slots or controllers",
	"Waited":              "The time for which the key was queued before the call",
	"Waiting":             "Notifications that wait for the handlers",
	"Watches":             "Watches that were begun: servers end each after five to ten minutes",
	"Weight":              "1, and 16 for each object",
}

// stateWords explain the states of informers, handlers, controllers and elections.
var stateWords = map[string]string{
	"Pending":        "was not started",
	"Listing":        "reads the collection",
	"Watching":       "follows the changes",
	"Backoff":        "waits after a failure, and tries again by itself",
	"Forbidden":      "may not list and watch; it goes on by itself once it may",
	"NoSuchResource": "the server does not serve the resource; it goes on by itself once it does",
	"Silent":         "opens a new watch, as the last one brought nothing any more",
	"Stopped":        "has ended, or does not run",
	"Idle":           "has received everything",
	"Busy":           "has notifications that wait, fewer than its limit",
	"Behind":         "is over its limit: updates of one object are folded",
	"Stuck":          "is over its limit, and objects that came and went pile up",
	"Removed":        "is not called again",
	"Waiting":        "waits for its caches",
	"Running":        "makes calls",
	"Done":           "was a task, and has returned without an error",
	"Stale":          "makes no calls: a cache has been out of contact for longer than MaxStaleness",
	"Stopping":       "waits for calls that run",
	"Standby":        "waits for the Lease",
	"Leading":        "holds the Lease, and its controllers run",
	"Draining":       "its term has ended, and it waits for calls that run",
	"Joining":        "is not a member of the group yet, or not any more",
	"Member":         "owns what the map gives it",
	"Leaving":        "hands over what it owns",
}

// state returns a state with its explanation.
func state(name any) template.HTML {
	text := template.HTMLEscaper(name)
	if why := stateWords[text]; why != "" {
		text = `<abbr title="` + template.HTMLEscapeString(why) + `">` + text + `</abbr>`
	}
	return template.HTML(text) //nolint:gosec // it is escaped
}

// legend returns the explanations of the headings of a template, and the states if it has any.
func legend(source string) string {
	var b strings.Builder
	entry := func(of, why string) {
		fmt.Fprintf(&b, "<dt>%s</dt><dd>%s</dd>\n", template.HTMLEscapeString(of), template.HTMLEscapeString(why))
	}
	for _, heading := range sortedKeys(explanations) {
		if strings.Contains(source, ">"+heading+"</th>") ||
			strings.Contains(source, "<dt>"+heading+"</dt>") {
			entry(heading, explanations[heading])
		}
	}
	if strings.Contains(source, "{{state ") {
		for _, name := range sortedKeys(stateWords) {
			entry(name, stateWords[name])
		}
	}
	if b.Len() == 0 {
		return ""
	}
	return `<details class="legend" data-key="legend"><summary>What the words mean</summary>` +
		"<dl>\n" + b.String() + "</dl></details>"
}
