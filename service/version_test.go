package service

import (
	"runtime/debug"
	"testing"
)

func TestVersion(t *testing.T) {
	for from, want := range map[string]string{
		"v1.2.3":                             "1.2.3",
		"v0.2.0-rc.1":                        "0.2.0-rc.1",
		"v0.0.0-20261122063755-004bf1e1234d": "0.0.0-20261122063755-004bf1e1234d",
		"v0.1.1-0.20261122063755-004bf1e1234d+dirty": "0.1.1-0.20261122063755-004bf1e1234d+dirty",
		"":        unreleased,
		"(devel)": unreleased,
	} {
		if got := versionOf(&debug.BuildInfo{Main: debug.Module{Version: from}}); got != want {
			t.Errorf("%q is version %q, want %q", from, got, want)
		}
	}
	if !semantic.MatchString(unreleased) || !semantic.MatchString(Version()) {
		t.Errorf("%q or %q is no version for NATS", unreleased, Version())
	}
}
