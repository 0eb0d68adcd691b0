package debug

import (
	"html"
	"regexp"
	"strings"
)

// tableParts are the parts of a template that number the cells of its tables.
var tableParts = regexp.MustCompile(
	`<thead>|<tr>|<th scope="col"([^>]*)>([^<]*)</th>|<th scope="row"|<td([^>]*)>|</td>`)

// labelled returns a template whose cells have the headings of their columns as labels: on a narrow
// screen, a row is a card of its cells with their labels. A heading gets its explanation, which the
// legend of the page repeats.
func labelled(source string) string {
	var headings []string
	at := 0
	return tableParts.ReplaceAllStringFunc(source, func(part string) string {
		switch {
		case part == "<thead>":
			headings = nil
		case part == "<tr>":
			at = 0
		case strings.HasPrefix(part, `<th scope="col"`):
			found := tableParts.FindStringSubmatch(part)
			headings = append(headings, found[2])
			if why := explanations[found[2]]; why != "" {
				return `<th scope="col"` + found[1] + `><abbr title="` + html.EscapeString(why) + `">` +
					found[2] + `</abbr></th>`
			}
		case part == `<th scope="row"`:
			at++
		case part == "</td>":
			return "</div></td>"
		default: // a cell
			attributes := tableParts.FindStringSubmatch(part)[3]
			if at++; at <= len(headings) && !strings.Contains(attributes, "data-label") {
				attributes = ` data-label="` + headings[at-1] + `"` + attributes
			}
			return "<td" + attributes + "><div>"
		}
		return part
	})
}
