//go:build race

package gpuexec

const raceEnabled = true
