//go:build race

package testkit

// RaceDetector is whether the race detector runs, under which a test takes some ten times as long.
const RaceDetector = true
