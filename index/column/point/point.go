// Package point is the type of columns of places on earth: a latitude and a longitude in degrees. They are searched by distance alone.
package point

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/geniemq/geniemq/index/column"
	"github.com/geniemq/geniemq/index/distance"
	"github.com/geniemq/geniemq/index/schema"
)

// Column is the type of columns of points. A point is kept as two numbers, latitude and longitude, as it was given.
type Column struct{}

// Name implements column.Type.
func (Column) Name() string { return string(schema.PointColumn) }

// In implements column.Type: records of all kinds.
func (Column) In(kind schema.Kind) bool { return kind.Mixed() }

// Check implements column.Type.
func (Column) Check(_ *schema.Schema, c *schema.Column) []error {
	faults := append(column.Foreign(c, "from", "store", "metric", "index", "tree", "permutation", "auto_for"), distance.Check(c, distance.Points)...)
	if c.From != nil && len(c.From) != 2 {
		faults = append(faults, fmt.Errorf("from: a point is made of two input columns, from: [latitude, longitude], not of %d", len(c.From)))
	}
	return faults
}

// Attributes implements column.Type: there are none.
func (Column) Attributes(*schema.Column) []schema.AttributeSpec { return nil }

// Keeps implements column.Keeper.
func (Column) Keeps(_ *schema.Schema, c *schema.Column) schema.KeptSpec {
	return schema.KeptSpec{Form: schema.KeptNumbers, Returned: c.Store}
}

// Objects implements column.Type.
func (Column) Objects(*schema.Schema, *schema.Column) (column.ObjectEncoder, error) {
	return objects{}, nil
}

// Queries implements column.Type: nothing of a point can be counted.
func (Column) Queries(*schema.Schema, *schema.Column, int, column.Vocabulary) (column.QueryEncoder, error) {
	return nil, nil
}

type objects struct{}

// Encode appends latitude and longitude.
func (objects) Encode(dst *schema.Values, cell *schema.Cell) error {
	if cell.Empty() {
		return nil
	}
	p, err := Read(cell)
	if err != nil {
		return err
	}
	dst.Numbers = append(dst.Numbers, p.Lat+0, p.Lon+0) // never -0
	return nil
}

var errForm = errors.New(`a point is a latitude and a longitude in degrees: "52.52,13.40", [52.52,13.40] or {"lat":52.52,"lon":13.40}, or two columns (from)`)

// Read reads the point of a cell that has a value: of two texts, of one with both numbers, or of JSON.
func Read(cell *schema.Cell) (p distance.Point, err error) {
	if p, err = read(cell); err == nil {
		err = distance.CheckPoint(p)
	}
	return p, err
}

func read(cell *schema.Cell) (p distance.Point, err error) {
	if len(cell.Values) == 0 {
		return readJSON(cell.JSON)
	}
	texts := cell.Values
	if len(texts) == 1 {
		if texts = strings.Split(texts[0], ","); len(texts) == 1 {
			texts = strings.Fields(texts[0])
		}
	}
	if len(texts) != 2 {
		return p, errForm
	}
	for i, to := range []*float64{&p.Lat, &p.Lon} {
		if *to, err = strconv.ParseFloat(strings.TrimSpace(texts[i]), 64); err != nil || math.IsNaN(*to) {
			return p, fmt.Errorf("%.40q is no number: %w", texts[i], errForm)
		}
	}
	return p, nil
}

// readJSON reads an array of two numbers, or an object of lat and lon.
func readJSON(data []byte) (p distance.Point, err error) {
	if data = bytes.TrimSpace(data); len(data) > 0 && data[0] == '[' {
		var numbers []*float64 // null is no 0
		if json.Unmarshal(data, &numbers) != nil || len(numbers) != 2 || numbers[0] == nil || numbers[1] == nil {
			return p, errForm
		}
		return distance.Point{Lat: *numbers[0], Lon: *numbers[1]}, nil
	}
	var fields struct{ Lat, Lon *float64 }
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if decoder.Decode(&fields) != nil || fields.Lat == nil || fields.Lon == nil {
		return p, errForm
	}
	return distance.Point{Lat: *fields.Lat, Lon: *fields.Lon}, nil
}
