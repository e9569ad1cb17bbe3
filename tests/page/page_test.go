// Package page looks at the admin page as people do: in a browser, on a desk and on a phone, by day and by night.
package page

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	cdpage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/nats-io/nats.go"
)

var pictures = flag.String("pictures", "", "folder to leave pictures of the page in")

// patience is how long something that has to happen may take. It is long because machines are busy.
const patience = 60 * time.Second

// openBrowser starts Chromium, which ends with the test.
func openBrowser(t *testing.T) context.Context {
	t.Helper()
	program, err := exec.LookPath("chromium")
	if err != nil && os.Getenv("CI") == "true" {
		t.Fatal("chromium is not installed (Debian's package chromium), and CI=true")
	} else if err != nil {
		t.Skip("chromium is not installed (Debian's package chromium)")
	}
	// No sandbox: it is not to be had in a container, and the page is ours.
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.NoSandbox, chromedp.WSURLReadTimeout(patience))
	all, stop := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(stop)
	browser, end := chromedp.NewContext(all)
	t.Cleanup(end)
	if err := chromedp.Do(browser); err != nil {
		t.Fatalf("starting chromium: %v", err)
	}
	return browser
}

// tab is the page in a tab. It notes what a page should not do.
type tab struct {
	t   *testing.T
	ctx context.Context

	mu     sync.Mutex
	faults []string
}

// openTab opens the page in a window of so many pixels.
func openTab(t *testing.T, browser context.Context, admin string, width, height int64, scheme string) *tab {
	t.Helper()
	ctx, end := chromedp.NewContext(browser)
	ctx, cancel := context.WithTimeout(ctx, 4*patience)
	t.Cleanup(func() { cancel(); end() })
	b := &tab{t: t, ctx: ctx}
	err := chromedp.Listen(ctx, func(event any) {
		switch e := event.(type) {
		case *network.EventRequestWillBeSent:
			if url := e.Request.URL; !strings.HasPrefix(url, admin+"/") && !strings.HasPrefix(url, "data:") {
				b.fault("asks elsewhere: %s", url)
			}
		case *runtime.EventExceptionThrown:
			b.fault("exception: %s", e.ExceptionDetails.Text)
		case *runtime.EventConsoleAPICalled:
			b.fault("console: %s", e.Type)
		case *cdpage.EventJavascriptDialogOpening:
			go func() {
				_, _ = chromedp.Call(ctx, cdpage.HandleJavaScriptDialog, cdpage.HandleJavaScriptDialogParams{Accept: true})
			}() // yes, it is meant
		}
	})
	if err == nil {
		_, err = chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
	}
	if err != nil {
		t.Fatalf("opening a tab: %v", err)
	}
	var options []chromedp.EmulateViewportOption
	if width < 600 {
		options = append(options, chromedp.EmulateMobile, chromedp.EmulateTouch)
	}
	b.do("opening the page", chromedp.EmulateViewport(width, height, options...), chromedp.Navigate(admin+"/"))
	return b
}

func (b *tab) fault(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.faults = append(b.faults, fmt.Sprintf(format, args...))
}

func (b *tab) do(what string, actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, actions...); err != nil {
		b.t.Fatalf("%s: %v", what, err)
	}
}

// evaluate is the value of an expression on the page.
func evaluate[T any](b *tab, what, expression string) T {
	b.t.Helper()
	value, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		b.t.Fatalf("%s: %v", what, err)
	}
	return value
}

// is waits until an expression is true.
func (b *tab) is(what, expression string) {
	b.t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		if evaluate[bool](b, what, "!!("+expression+")") {
			return
		}
		if time.Now().After(end) {
			b.t.Fatalf("%s: it is not so that %s; the page says\n%s", what, expression, evaluate[string](b, what, "document.body.innerText"))
		}
	}
}

// says waits until an element's text has something in it.
func (b *tab) says(what, id, text string) {
	b.t.Helper()
	b.is(what, fmt.Sprintf("document.getElementById(%q).textContent.includes(%q)", id, text))
}

// fill writes into a field as a person does who types.
func (b *tab) fill(id, text string) {
	b.t.Helper()
	evaluate[string](b, "emptying "+id, fmt.Sprintf(`document.getElementById(%q).value = ""`, id))
	b.do("writing into "+id, chromedp.SendKeys(chromedp.CSS("#"+id), text))
}

func (b *tab) click(selector string) {
	b.t.Helper()
	b.do("clicking "+selector, chromedp.Click(chromedp.CSS(selector)))
}

// live waits until the page shows figures that change by themselves.
func (b *tab) live() {
	b.t.Helper()
	b.is("the page is live", `!document.getElementById("live").hidden && parseFloat(document.getElementById("t-rate").textContent) > 0`)
	up := evaluate[string](b, "reading the time", `document.getElementById("up").textContent`)
	b.is("figures change by themselves", fmt.Sprintf(`document.getElementById("up").textContent !== %q`, up))
	b.is("there are stages and batches", `document.querySelectorAll("#stages tr").length > 3 && document.querySelectorAll("#sizes tr").length > 1`)
	b.is("both indexes are shown", `document.querySelectorAll("#indexes tr").length === 3`)
}

// fits checks that nothing is wider than the window and that all that is shown can be seen, and looks at the colours.
func (b *tab) fits(name string, dark bool) {
	b.t.Helper()
	if wider := evaluate[int](b, "measuring", `document.documentElement.scrollWidth - window.innerWidth`); wider > 0 {
		b.t.Errorf("%s: the page is %d pixels wider than the window", name, wider)
	}
	image, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
	if err != nil {
		b.t.Fatalf("taking a picture: %v", err)
	}
	picture, err := png.Decode(bytes.NewReader(image))
	if err != nil {
		b.t.Fatal(err)
	}
	var light, seen int
	for y := picture.Bounds().Min.Y; y < picture.Bounds().Max.Y; y += 7 {
		for x := picture.Bounds().Min.X; x < picture.Bounds().Max.X; x += 7 {
			if r, g, bl, _ := picture.At(x, y).RGBA(); (r+g+bl)/3 > 0x8000 {
				light++
			}
			seen++
		}
	}
	if share := float64(light) / float64(seen); dark == (share > 0.5) || share == 0 || share == 1 {
		b.t.Errorf("%s: %.2f of the picture is light", name, share)
	}
	if *pictures != "" {
		if err := os.WriteFile(filepath.Join(*pictures, name+".png"), image, 0o644); err != nil {
			b.t.Fatal(err)
		}
	}
}

// behaves checks that the page did nothing that it should not do.
func (b *tab) behaves(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, fault := range b.faults {
		b.t.Errorf("%s: %s", name, fault)
	}
}

// The page is live, fits desks and phones, has light and dark colours, and asks nobody but its worker. What it offers works: trying a query, dead letters, a swap, an
// index that comes and goes.
func TestPage(t *testing.T) {
	browser := openBrowser(t)
	w := startWorker(t)
	w.load(t)
	letter := &nats.Msg{Subject: "genie.query.people", Header: nats.Header{"Genie-Reply": {"nowhere"}}, Data: []byte(`{"row":{"age":30}}`)}
	if err := w.nc.PublishMsg(letter); err != nil {
		t.Fatal(err)
	}
	for _, scheme := range []string{"light", "dark"} {
		for _, size := range []struct {
			name          string
			width, height int64
		}{{"desk", 1280, 900}, {"phone", 390, 844}} {
			name := size.name + "-" + scheme
			b := openTab(t, browser, w.admin, size.width, size.height, scheme)
			b.live()
			b.says("a dead letter is counted", "t-dead", "1")
			b.fill("ask-text", `{"k":4,"row":{"age":30,"city":"Oslo"}}`)
			b.click("#ask-do")
			b.is("hits are shown", `document.querySelectorAll("#ask-said table tr").length === 5`)
			b.says("with what is stored", "ask-said", "Oslo")
			b.is("and what they came from", `document.querySelector("#ask-said details pre")?.textContent.includes("age")`)
			if *pictures != "" {
				time.Sleep(6 * time.Second) // a line in the chart
			}
			b.fits(name, scheme == "dark")
			b.behaves(name)
		}
	}

	b := openTab(t, browser, w.admin, 1280, 900, "light")
	b.live()
	b.fill("ask-text", `{"row":{"height":3}}`)
	b.click("#ask-do")
	b.is("a wrong query is told what is wrong", `document.querySelector("#ask-said .bad")?.textContent.includes("height")`)
	b.fill("ask-text", `{"row":`)
	b.click("#ask-do")
	b.says("and so is what is no JSON", "ask-said", "this is no JSON")

	b.click("#dead-list button:nth-of-type(1)")
	b.says("a letter is shown", "dead-said", "nowhere")
	b.click("#dead-list button:nth-of-type(2)")
	b.says("and sent again", "dead-said", "is message")
	b.is("to come back as another", `document.querySelector("#dead-list td")?.textContent === "2"`)
	b.click("#dead-list button:nth-of-type(3)")
	b.says("and deleted, after a question", "dead-note", "none")

	b.fill("swap-file", w.next+".not")
	b.click("#swap-do")
	b.is("a wrong file is refused", `document.getElementById("swap-said").className === "bad"`)
	b.fill("swap-file", w.next)
	b.click("#swap-do")
	b.says("another version answers", "swap-said", "answers, ")
	b.is("and is shown", `document.getElementById("indexes").textContent.includes("3,000")`)
	b.fill("add-file", w.next)
	b.fill("add-index", "others")
	b.click("#add-do")
	b.says("an index is added", "add-said", "others: version")
	b.is("and shown", `document.querySelectorAll("#indexes tr").length === 4`)
	evaluate[string](b, "choosing it", `document.getElementById("remove-index").value = "others"`)
	b.click("#remove-do")
	b.says("and removed, after a question", "remove-said", "answers no longer")
	b.is("and shown no longer", `document.querySelectorAll("#indexes tr").length === 3`)
	b.behaves("what the page offers")
}
