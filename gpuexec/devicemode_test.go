package gpuexec

import (
	"reflect"
	"testing"
)

func TestParseDevices(t *testing.T) {
	for text, want := range map[string][]int{"": nil, "all": {AllDevices}, "0": {0}, "1, 0,7": {1, 0, 7}} {
		if got, err := ParseDevices(text); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %v %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"a", "-1", "0,0", "0,,1", "all,0", ","} {
		if got, err := ParseDevices(text); err == nil {
			t.Errorf("%q is taken: %v", text, got)
		}
	}
}
