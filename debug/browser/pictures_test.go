package browser

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/tidings-go/tidings/debug"
)

var (
	demoCommand = flag.String("demo", "", "the command tidings, for the pictures of the documentation")
	docs        = flag.String("docs", "", "the directory of the pictures of the documentation")
)

const (
	problems = "section.problems"
	// picturesTimeout bounds the time of all pictures, and largestPicture their size in bytes.
	picturesTimeout = 8 * time.Minute
	largestPicture  = 150_000
	// historyLength is the time after which graphs have something to show.
	historyLength = 90 * time.Second
)

// demo is a demo that runs.
type demo struct {
	*tab
	pages  map[string]string // addresses by the text before them
	reader sync.Mutex        // held while nobody reads its output
}

// startDemo starts a demo, and waits until it has printed the addresses of pages.
func startDemo(t *testing.T, pages int, args ...string) *demo {
	t.Helper()
	d := &demo{tab: &tab{T: t}, pages: map[string]string{}}
	args = append([]string{"demo", "--for", "0", "--seed", "1", "--page", "127.0.0.1:0"}, args...)
	command := exec.CommandContext(t.Context(), *demoCommand, args...)
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	out, err := command.StdoutPipe()
	d.fatal(err)
	command.Stderr = command.Stdout
	d.fatal(command.Start())
	lines := bufio.NewScanner(out)
	address := regexp.MustCompile(`^── (.*?):? (?:with pages at )?(http://\S*/\S*)$`)
	for len(d.pages) < pages && lines.Scan() {
		if found := address.FindStringSubmatch(lines.Text()); found != nil {
			d.pages[found[1]] = found[2]
		}
	}
	go func() {
		for more := true; more; {
			d.reader.Lock() // unless the terminal stands still
			more = lines.Scan()
			d.reader.Unlock()
		}
	}()
	t.Cleanup(func() {
		command.Process.Signal(os.Interrupt) //nolint:errcheck // it may have ended
		command.Wait()                       //nolint:errcheck // as above
	})
	for name, page := range d.pages {
		if strings.HasSuffix(name, "on a page") {
			d.url = page
		}
	}
	d.start(picturesTimeout)
	return d
}

// read reads the JSON form of a page.
func (d *demo) read(path string, figures any) {
	d.Helper()
	request, err := http.NewRequestWithContext(d.T.Context(), http.MethodGet, d.url+path, nil)
	d.fatal(err)
	request.Header.Set("Accept", "application/json")
	answer, err := http.DefaultClient.Do(request)
	d.fatal(err)
	defer answer.Body.Close() //nolint:errcheck // it was read
	d.fatal(json.NewDecoder(answer.Body).Decode(figures))
}

// situation is one in which a picture is taken of the first page.
type situation struct {
	picture  string
	is       func(c debug.Cause) bool // of a cause on the page
	from, to string                   // as for take
	clicks   []string
}

// await waits for situations, and takes their pictures. When each of them comes is a matter of
// chance, so that they may come in any order.
func (d *demo) await(situations ...situation) {
	d.Helper()
	look := func(context.Context) (bool, error) {
		var o debug.Overview
		d.read("", &o)
		situations = slices.DeleteFunc(situations, func(s situation) bool {
			isThere := slices.ContainsFunc(o.Causes, s.is)
			if isThere {
				d.take(s.picture, "", 1000, s.from, s.to, s.clicks...)
			}
			return isThere
		})
		return len(situations) == 0, nil
	}
	const often = 200 * time.Millisecond
	err := wait.PollUntilContextTimeout(d.T.Context(), often, picturesTimeout/2, true, look)
	if err != nil {
		d.Fatalf("no situation for the picture %s has come: %v", situations[0].picture, err)
	}
}

// take takes a picture of a page, of a width, from the upper edge or the element with the selector
// from to the end of the last one with the selector to, after clicks on others.
func (d *demo) take(name, path string, width int64, from, to string, clicks ...string) {
	d.Helper()
	var clip page.Viewport
	var content []byte
	d.run(chromedp.EmulateViewport(width, 900), chromedp.Navigate(d.url+path), chromedp.WaitVisible(to))
	for _, selector := range clicks {
		d.run(chromedp.Click(selector))
	}
	d.run(chromedp.Evaluate(fmt.Sprintf(`(() => {
			const from = document.querySelector(%q), to = [...document.querySelectorAll(%q)].at(-1);
			const y = from ? Math.max(0, from.getBoundingClientRect().top + scrollY - 12) : 0;
			return {x: 0, y, width: %d, height: to.getBoundingClientRect().bottom + scrollY + 12 - y, scale: 1};
		})()`, cmp.Or(from, "none"), to, width), &clip),
		chromedp.ActionFunc(func(ctx context.Context) (err error) {
			content, err = page.CaptureScreenshot().WithClip(&clip).WithCaptureBeyondViewport(true).Do(ctx)
			return err
		}))
	content = d.reduced(content)
	if len(content) > largestPicture {
		d.Errorf("%s has %d bytes, more than %d", name, len(content), largestPicture)
	}
	d.fatal(os.WriteFile(filepath.Join(*docs, name+".png"), content, 0o644))
}

// reduced returns a picture with its 256 most frequent colours, in 32 steps of each part.
func (d *demo) reduced(content []byte) []byte {
	d.Helper()
	full, err := png.Decode(bytes.NewReader(content))
	d.fatal(err)
	bounds, counts := full.Bounds(), map[color.Color]int{}
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			r, g, b, _ := full.At(x, y).RGBA()
			counts[color.RGBA{step(r), step(g), step(b), 255}]++
		}
	}
	colours := slices.SortedFunc(maps.Keys(counts), func(a, b color.Color) int { return counts[b] - counts[a] })
	small := image.NewPaletted(bounds, colours[:min(len(colours), 256)])
	draw.Draw(small, bounds, full, bounds.Min, draw.Src)
	var b bytes.Buffer
	d.fatal((&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&b, small))
	return b.Bytes()
}

// step returns a part of a colour as the nearest of 32 steps.
func step(part uint32) uint8 { return uint8((part*31 + 0x7fff) / 0xffff * 255 / 31) }

// TestPicturesOfTheDocumentation takes the pictures of docs/debug from demos: make pictures.
func TestPicturesOfTheDocumentation(t *testing.T) {
	if *demoCommand == "" {
		t.Skip("make pictures takes them")
	}
	has := func(text string) func(debug.Cause) bool {
		return func(c debug.Cause) bool { return c.IsOne() && strings.Contains(c.What, text) }
	}
	isOutage := func(c debug.Cause) bool { return c.Informers > 1 && c.Level == debug.LevelError }
	d := startDemo(t, 1, "--faults", "--pods", "500", "--churn", "200")
	began := time.Now()

	d.await(situation{"forbidden", has("is Forbidden"), "h1", problems, nil},
		situation{"informer-behind", isOutage, "h1", problems, []string{problems + " details > summary"}},
		situation{"stuck-key", has("is held back"), "h1", problems, nil})
	d.reader.Lock() // the terminal of the demo is stopped: the handlers that print wait
	d.await(situation{"slow-handler", has("has not returned"), "h1", problems, nil})
	d.reader.Unlock()

	var c debug.ControllerFigures
	d.read("controller?name=deployments", &c)
	key := url.QueryEscape(c.LastCalls[0].Key)
	d.take("why-reconciled", "key?key="+key, 1000, "h1", "main > div > table")
	d.take("changed-field", "key?key="+key+"&field=replicas", 1000, "h1", "main > div > section")
	d.take("memory", "", 1000, "main table:nth-of-type(2)", "main table:nth-of-type(2)")
	time.Sleep(time.Until(began.Add(historyLength)))
	d.await(situation{"overview", isOutage, "", "main table:nth-of-type(1)", nil})

	group := startDemo(t, 5, "--replicas", "3", "--pods", "500")
	group.url, _, _ = strings.Cut(group.pages["the group's map"], "group?")
	for covered := (debug.GroupFigures{}); covered.Covered < 1; time.Sleep(time.Second) {
		group.read(groupOfDemo, &covered)
	}
	group.take("group", groupOfDemo, 1000, "h1", "main table")
}

// groupOfDemo is the page of the group of a demo.
const groupOfDemo = "group?name=default%2Ffleet"
