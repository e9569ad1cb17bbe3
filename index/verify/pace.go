package verify

// A Pace is asked several times a millisecond, in the middle of a comparison too, whether to go on: it returns nil, or an error
// with which the work stops where it is. Nothing is lost then: the same call goes on later, with the same outcome as if it
// had not been stopped. A Pace may take its time, to let others have the core.
type Pace func() error

// PaceWork is the work between two questions to a Pace: a third of a millisecond, and some ten times that where the symbols of a
// long query have to be looked up because they are not of Latin-1.
const PaceWork = 1 << 16

const (
	// textWork is what a text costs of which its length is enough.
	textWork = 2
	// overlapWork is what counting common grams costs, a byte.
	overlapWork = 8
)

// meter counts work and asks the pace once there is enough of it. The unit is a step of a block of 64 rows, some 5 ns.
type meter struct {
	left  int // work until the next question
	pace  Pace
	every int   // work between two questions; 0: PaceWork
	err   error // of the pace, until it was handed on
}

// Did makes it a levenshtein.Meter, with Most and Stop.
func (m *meter) Did(work int) { m.left -= work }

// Stop asks if it is time to.
func (m *meter) Stop() bool { return m.due() && m.ask() }

// due is true when the pace is to be asked. It is apart from ask because it is asked for every text.
func (m *meter) due() bool { return m.left <= 0 }

// ask asks the pace and reports whether to stop.
func (m *meter) ask() bool {
	if m.err != nil {
		return true
	}
	m.left = m.Most()
	if m.pace != nil {
		m.err = m.pace()
	}
	if m.err != nil {
		m.left = 0 // until it is handed on
	}
	return m.err != nil
}

// Most is the work between two questions.
func (m *meter) Most() int {
	if m.every > 0 {
		return m.every
	}
	return PaceWork
}

// take hands the error on, with which there is work to do again before the next question.
func (m *meter) take() error {
	err := m.err
	m.err, m.left = nil, m.Most()
	return err
}
