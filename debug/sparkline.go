package debug

import (
	"fmt"
	"html/template"
	"slices"
	"strings"
)

const sparkWidth, sparkHeight = 120, 24

// sparkline draws a series. Its description has the extreme values and the last one.
func sparkline(title string, s Series) template.HTML {
	if len(s) < 2 {
		return ""
	}
	top := max(slices.Max(s), 1)
	var points strings.Builder
	for i, value := range s {
		x := float64(sparkWidth) * float64(samples-len(s)+i) / float64(samples-1)
		fmt.Fprintf(&points, "%.1f,%.1f ", x, 1+(sparkHeight-2)*(1-value/top))
	}
	description := fmt.Sprintf("%s in the last %d seconds: %s now, from %s to %s", title, len(s),
		number(s.Last()), number(slices.Min(s)), number(slices.Max(s)))
	text := template.HTMLEscapeString(description)
	return template.HTML(fmt.Sprintf( //nolint:gosec // the text is escaped, the rest are numbers
		`<svg class="spark" role="img" aria-label="%s" width="%d" height="%d" viewBox="0 0 %[2]d %[3]d">`+
			`<title>%[1]s</title><polyline points="%[4]s"/></svg>`,
		text, sparkWidth, sparkHeight, points.String()))
}

func number(value float64) string {
	if value == float64(int64(value)) {
		return fmt.Sprint(int64(value))
	}
	return fmt.Sprintf("%.1f", value)
}
