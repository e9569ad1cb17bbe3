// Package figure draws curves: as letters on a terminal, and into SVG files.
package figure

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"

	"github.com/guptarohit/asciigraph"
	"github.com/wcharczuk/go-chart/v2"

	"github.com/geniemq/geniemq/cmd/geniemq/table"
)

// Axis is one of a figure, from 0 to Most, or from Least, with a mark at each Step.
type Axis struct {
	Name        string
	Least, Most float64
	Step        float64
}

// Curve is some points of a figure.
type Curve struct {
	Name string
	X, Y []float64
}

// Mark is a point with a text beside it.
type Mark struct {
	X, Y float64
	Text string
}

// Figure is some curves.
type Figure struct {
	Title  string
	X, Y   Axis
	Curves []Curve
	Marks  []Mark
}

// colours tell curves apart, by those who see few colours too.
var colours = []string{"0072b2", "d55e00", "009e73", "cc79a7"}

// Draw writes the figure into an SVG file.
func (f *Figure) Draw(path string) (err error) {
	drawn := chart.Chart{
		Title:      f.Title,
		TitleStyle: chart.Style{FontSize: 10},
		Background: chart.Style{Padding: chart.Box{Top: 50, Left: 20, Right: 30, Bottom: 20}},
		Width:      800, Height: 480,
		XAxis: chart.XAxis{Name: f.X.Name, Range: &chart.ContinuousRange{Min: f.X.Least, Max: f.X.Most}, Ticks: f.X.ticks()},
		YAxis: chart.YAxis{Name: f.Y.Name, Range: &chart.ContinuousRange{Min: f.Y.Least, Max: f.Y.Most}, Ticks: f.Y.ticks()},
	}
	for i, c := range f.Curves {
		style := chart.Style{StrokeWidth: 2, StrokeColor: chart.ColorBlue}
		style.StrokeColor.R, style.StrokeColor.G, style.StrokeColor.B = rgb(colours[i%len(colours)])
		drawn.Series = append(drawn.Series, chart.ContinuousSeries{Name: c.Name, XValues: c.X, YValues: c.Y, Style: style})
	}
	var marks chart.AnnotationSeries
	for _, m := range f.Marks {
		marks.Annotations = append(marks.Annotations, chart.Value2{XValue: m.X, YValue: m.Y, Label: m.Text})
	}
	drawn.Series = append(drawn.Series, marks)
	if len(f.Curves) > 1 {
		drawn.Elements = []chart.Renderable{chart.LegendThin(&drawn)}
	}
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("drawing the plot: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if err := drawn.Render(chart.SVG, file); err != nil {
		return fmt.Errorf("drawing the plot %s: %w", path, err)
	}
	return nil
}

func rgb(hex string) (r, g, b uint8) {
	v, _ := strconv.ParseUint(hex, 16, 24) // they are constants
	return uint8(v >> 16), uint8(v >> 8), uint8(v)
}

// ticks are the marks of an axis.
func (a *Axis) ticks() (at []chart.Tick) {
	for i := range int(math.Round((a.Most-a.Least)/a.Step)) + 1 {
		v := a.Least + float64(i)*a.Step
		at = append(at, chart.Tick{Value: v, Label: strconv.FormatFloat(v, 'g', 6, 64)})
	}
	return at
}

// Letters draws curves of evenly spaced points, above 0, with so many digits after the point at the side. Curves that are wider than the page are drawn with fewer points.
func Letters(p *table.Page, caption string, digits uint, curves ...[]float64) {
	side := func(v float64) string {
		return strconv.FormatFloat(max(v, 0), 'f', int(digits), 64) // the lowest mark is some -1e-17
	}
	options := []asciigraph.Option{asciigraph.Height(12), asciigraph.YAxisValueFormatter(side), asciigraph.LowerBound(0), asciigraph.Caption(table.Clean(caption))}
	drawn := asciigraph.PlotMany(curves, options...)
	if room := p.Width; room > 0 {
		points, wide := 0, 0
		for _, c := range curves {
			points = max(points, len(c))
		}
		for line := range strings.Lines(drawn) {
			wide = max(wide, table.Width(strings.TrimSuffix(line, "\n")))
		}
		if over := wide - room; over > 0 {
			drawn = asciigraph.PlotMany(curves, append(options, asciigraph.Width(max(points-over, 2)))...)
		}
	}
	for line := range strings.Lines("\n" + drawn + "\n\n") {
		fmt.Fprintln(p, cut(strings.TrimRight(line, " \n"), p.Width))
	}
}

// cut is a line within a page: captions have no other width than their own.
func cut(line string, room int) string {
	if room <= 0 {
		return line
	}
	return table.Cut(line, room)
}
