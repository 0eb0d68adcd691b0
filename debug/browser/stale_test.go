package browser

import (
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// barHas waits until the bar of a page that is stale is shown with a text, and returns it.
func (b *tab) barHas(text string) string {
	b.Helper()
	got := ""
	b.run(chromedp.Poll(`(() => {
		const bar = document.getElementById("stale");
		return !bar.hidden && bar.textContent.includes(`+"`"+text+"`"+`) && bar.textContent;
	})()`, &got))
	return got
}

// isFresh waits until the page is not stale.
func (b *tab) isFresh() {
	b.Helper()
	b.run(chromedp.Poll(`document.getElementById("stale").hidden && !document.body.matches(".stale")`, nil))
}

// TestAStalePageSaysSo: refused, without an answer, and when there are answers again.
func TestAStalePageSaysSo(t *testing.T) {
	b := open(t)
	b.run(chromedp.Navigate(b.url), chromedp.WaitVisible("h1"))
	b.isFresh()
	for status, want := range map[int64]string{
		http.StatusNotFound: "The answer is 404", http.StatusInternalServerError: "The answer is 500",
		silent: "No answer for",
	} {
		b.refusal.Store(status)
		if got := b.barHas(want); !strings.Contains(got, " s: figures of ") || !strings.HasSuffix(got, " UTC") {
			t.Errorf("%d: the bar has %q", status, got)
		}
		var title, color, faint string
		b.run(chromedp.Title(&title),
			chromedp.Evaluate(`getComputedStyle(document.querySelector("tbody td")).color`, &color),
			chromedp.Evaluate(`getComputedStyle(document.querySelector("#figures")).color`, &faint))
		if !strings.HasPrefix(title, "(no answer) Overview") || color != faint {
			t.Errorf("%d: the title is %q, and the figures are %s, not %s", status, title, color, faint)
		}
		if status == silent {
			b.examine("stale")
		}
		b.refusal.Store(0)
		b.isFresh()
	}
}

// TestAnOpenPartStaysOpen: a refresh keeps what a click has opened, and the focus, and goes on.
func TestAnOpenPartStaysOpen(t *testing.T) {
	b := open(t)
	b.server.SetAvailable(false)
	t.Cleanup(func() { b.server.SetAvailable(true) })
	const summary = `details[data-key="The API server does not answer"] > summary`
	b.run(chromedp.Navigate(b.url), chromedp.WaitVisible(summary), chromedp.Click(summary))
	text, at := "", ""
	b.run(chromedp.Evaluate(`document.querySelector("#figures time").textContent`, &at))
	b.run(chromedp.Poll(`document.querySelector("#figures time").textContent !== "`+at+`"`, nil),
		chromedp.Text(`details[open] > ul`, &text))
	if !strings.Contains(text, "configmaps.v1 is Backoff") {
		t.Errorf("the opened part has %q", text)
	}
	var focused bool
	b.run(chromedp.Evaluate(`document.activeElement.matches("details > summary")`, &focused))
	if !focused {
		t.Error("the focus is lost")
	}
	b.examine("outage")
}

// TestPagesOfAnOutageSaySo: that of a controller, a key and changes name the informer that reads
// nothing, and the first page leads to what to do with one click.
func TestPagesOfAnOutageSaySo(t *testing.T) {
	b := open(t)
	b.server.SetAvailable(false)
	t.Cleanup(func() { b.server.SetAvailable(true) })
	b.run(chromedp.Navigate(b.url), chromedp.WaitVisible(`section.problems summary a.help`))
	for _, name := range []string{"controller", "key", "changes"} {
		text := ""
		b.run(chromedp.Navigate(b.url+pages[name]), chromedp.Text("section.problems", &text))
		if !strings.Contains(text, "configmaps.v1 is Backoff") {
			t.Errorf("the problems of %s are %q", name, text)
		}
		b.examine(name + "-outage")
	}
}

// TestGraphsHaveTheTimeBefore: the history has points of before the first request.
func TestGraphsHaveTheTimeBefore(t *testing.T) {
	b := open(t)
	var before, after string
	const path = `document.querySelector(".graphs figure:last-of-type path").getAttribute("d")`
	b.run(chromedp.Navigate(b.url), chromedp.WaitVisible(".graphs"), chromedp.Evaluate(path, &before))
	b.run(chromedp.Poll(path+` !== "`+before+`"`, nil), chromedp.Evaluate(path, &after))
	if !strings.HasPrefix(before, "M") || !strings.Contains(after, "L") {
		t.Errorf("the paths are %q, %q", before, after)
	}
}

// TestFindCompletesKeys: what is typed is completed, and a name without a namespace is found.
func TestFindCompletesKeys(t *testing.T) {
	b := open(t)
	b.run(chromedp.Navigate(b.url), chromedp.WaitVisible("h1"), chromedp.SendKeys("#key", "ings-17"),
		chromedp.Poll(`document.querySelector("#found option")?.value === "shop/settings-17"`, nil))
	b.submit(chromedp.SendKeys("#key", "\b\b\b\b\b\b\bsettings-17\r"))
	title := ""
	b.run(chromedp.Text("h1", &title))
	if title != "Key shop/settings-17" {
		t.Errorf("the page is %q", title)
	}
}

// TestRowsAreCards: on a narrow screen, the headings of columns are hidden, and each cell says its
// own; a wide one has a table.
func TestRowsAreCards(t *testing.T) {
	b := open(t)
	const label = `getComputedStyle(document.querySelector("td[data-label=Objects]"), "::before").content`
	for width, want := range map[int64]string{390: `"Objects "`, 1280: "none"} {
		got := ""
		b.run(chromedp.EmulateViewport(width, 900), chromedp.Navigate(b.url), chromedp.WaitVisible("h1"),
			chromedp.Evaluate(label, &got))
		if got != want {
			t.Errorf("%d pixels: the label is %s, want %s", width, got, want)
		}
	}
}
