package point

import (
	"encoding/json"
	"testing"

	"github.com/geniemq/geniemq/index/distance"
	"github.com/geniemq/geniemq/index/schema"
)

// A coordinate that is null is none, and not 0.
func TestReadJSON(t *testing.T) {
	for text, want := range map[string]*distance.Point{
		"[52.5,13.4]": {Lat: 52.5, Lon: 13.4}, `{"lat":52.5,"lon":13.4}`: {Lat: 52.5, Lon: 13.4}, "[0,0]": {},
		"[null,13.4]": nil, "[52.5,null]": nil, `{"lat":null,"lon":13.4}`: nil, "[52.5]": nil, "[91,0]": nil,
	} {
		p, err := Read(&schema.Cell{JSON: json.RawMessage(text)})
		if (err == nil) != (want != nil) || want != nil && p != *want {
			t.Errorf("%s: %v, %v", text, p, err)
		}
	}
}
