package browser

import (
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	corev1 "k8s.io/api/core/v1"
)

// check is a function that returns the problems of a page for its users: in names, headings,
// contrast and width.
//
//go:embed testdata/check.js
var check string

var pages = map[string]string{
	"overview": "", "informer": "informer?name=configmaps.v1", "forbidden": "informer?name=pods.v1",
	"controller": "controller?name=values", "key": "key?key=shop/settings-7",
	"changes": "changes?informer=configmaps.v1", "nothing": "changes",
}

var configMaps = corev1.SchemeGroupVersion.WithResource("configmaps")

func TestPages(t *testing.T) {
	b := open(t)
	for name, path := range pages {
		b.run(chromedp.Navigate(b.url+path), chromedp.WaitVisible("h1"))
		b.examine(name)
	}
}

// examine reports the problems of a page, in two widths, light and dark.
func (b *tab) examine(name string) {
	b.Helper()
	for _, width := range []int64{390, 1280} {
		for _, scheme := range []string{"light", "dark"} {
			features := []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}
			var wrong []string
			b.run(chromedp.EmulateViewport(width, 1000), emulation.SetEmulatedMedia().WithFeatures(features),
				chromedp.Evaluate(check, &wrong))
			for _, problem := range wrong {
				b.Errorf("%s, %d pixels, %s: %s", name, width, scheme, problem)
			}
			b.picture(fmt.Sprintf("%s-%d-%s.png", name, width, scheme))
		}
	}
}

// picture writes a picture of the page, if the flag names a directory.
func (b *tab) picture(name string) {
	b.Helper()
	if *pictures == "" {
		return
	}
	var content []byte
	b.run(chromedp.FullScreenshot(&content, 100))
	b.fatal(os.WriteFile(filepath.Join(*pictures, name), content, 0o644))
}

func TestChangesAreLive(t *testing.T) {
	b := open(t)
	row := func(key string) string {
		return fmt.Sprintf(`//table[@id="changes"]//tr[.//a[text()=%q]]`, key)
	}
	text := ""
	b.run(chromedp.Navigate(b.url+"changes?informer=configmaps.v1"), connected)
	b.set("settings-1", "second")
	b.run(chromedp.Text(row("shop/settings-1"), &text, chromedp.BySearch))
	if !strings.Contains(text, `data.value: "first" → "second"`) {
		t.Errorf("the row is %q", text)
	}
	b.run(chromedp.Click("#pause"))
	b.set("settings-2", "second")
	b.run(chromedp.Poll(`document.getElementById("status").textContent.includes("1 wait")`, nil))
	var rows int
	b.run(chromedp.Evaluate(`document.querySelectorAll("#changes tbody tr").length`, &rows))
	if rows != 1 {
		t.Errorf("%d rows while the view is paused, want 1", rows)
	}
	b.run(chromedp.Click("#pause"), chromedp.WaitVisible(row("shop/settings-2"), chromedp.BySearch))

	b.run(chromedp.SetValue("#filter", "settings-2"))
	b.submit(chromedp.Submit("#filter"))
	b.run(connected)
	b.set("settings-1", "third")
	b.set("settings-20", "third")
	b.run(chromedp.Text(row("shop/settings-20"), &text, chromedp.BySearch),
		chromedp.Evaluate(`document.querySelectorAll("#changes tbody tr").length`, &rows))
	if rows != 1 {
		t.Errorf("%d rows with a filter, want 1", rows)
	}
}

// connected waits until the view of changes is live.
var connected = chromedp.Poll(`document.getElementById("status")?.textContent.includes("connected")`, nil)

func TestFiguresAreRefreshed(t *testing.T) {
	b := open(t)
	b.run(chromedp.Navigate(b.url+"informer?name=configmaps.v1"), chromedp.WaitVisible("h1"))
	b.set("settings-1", "second")
	_, version, err := b.server.List(t.Context(), configMaps, "")
	b.fatal(err)
	b.run(chromedp.Poll(fmt.Sprintf(`document.querySelector("dl").textContent.includes("Version%s")`, version), nil))
}

// TestPagesWithoutScripts uses forms and links alone.
func TestPagesWithoutScripts(t *testing.T) {
	b := open(t)
	b.run(emulation.SetScriptExecutionDisabled(true), chromedp.Navigate(b.url))
	b.submit(chromedp.SendKeys("#key", "shop/settings-7\r"))
	at, text := "", ""
	b.run(chromedp.Location(&at), chromedp.Text("main", &text))
	if !strings.Contains(at, "key?key=shop%2Fsettings-7") || !strings.Contains(text, "7 is not a good number") {
		t.Errorf("%s has %q", at, text)
	}
	written := make(chan struct{})
	go func() {
		defer close(written)
		b.followed()
		b.set("settings-3", "second")
	}()
	b.run(chromedp.Navigate(b.url+"changes?informer=configmaps.v1&once=1"), chromedp.Text("#changes tbody", &text))
	<-written
	if !strings.Contains(text, "shop/settings-3") || !strings.Contains(text, "data.value") {
		t.Errorf("the changes are %q", text)
	}
}

// TestLongValuesBreak: a long value without spaces, such as the slots that are not ready, fits a phone.
func TestLongValuesBreak(t *testing.T) {
	b := open(t)
	width := 0
	b.run(chromedp.EmulateViewport(390, 1000), chromedp.Navigate(b.url+pages["informer"]), chromedp.WaitVisible("h1"),
		chromedp.Evaluate(`(() => {
			document.querySelector("dd").textContent = "1,4,7,".repeat(50);
			return document.documentElement.scrollWidth;
		})()`, &width))
	if width > 390 {
		t.Errorf("the page is %d pixels wide", width)
	}
}
