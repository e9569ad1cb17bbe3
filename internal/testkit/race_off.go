//go:build !race

package testkit

// RaceDetector is whether the race detector runs.
const RaceDetector = false
