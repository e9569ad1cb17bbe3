package service

import (
	"regexp"
	"runtime/debug"
	"strings"
)

// unreleased is the version of a program that was built without one, such as by go test or go run.
const unreleased = "0.0.0-devel"

// semantic is what a version looks like for NATS: https://semver.org, without the v.
var semantic = regexp.MustCompile(`^\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$`)

// Version is the version of this program, as the NATS micro service, the admin page and geniemq --version give it. The go command
// writes it into what it builds: the tag of the commit, or one that is made of the commit's time and hash.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return unreleased
	}
	return versionOf(info)
}

func versionOf(info *debug.BuildInfo) string {
	version := strings.TrimPrefix(info.Main.Version, "v")
	if !semantic.MatchString(version) { // "" or (devel)
		return unreleased
	}
	return version
}
