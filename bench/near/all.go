package near

// All are all measurements.
func All() []Measurement {
	return []Measurement{choice(), ways(), capacity(), growth(), permutation(), builds()}
}
