package served

import "github.com/geniemq/geniemq/wire"

// pullBytes is how much all consumers ask for at a time: half of a server's default max_pending, though not all of them share a connection.
const pullBytes = 32 << 20

// share is what the consumers of one index may hold and ask for, in bytes.
type share struct {
	window, pull int64
	others       int64 // classes beside that of queries
}

// shares are those of each of so many indexes.
func (s *Set) shares(indexes int) share {
	indexes = max(1, indexes)
	return share{window: s.options.Budget.Window(indexes), pull: pullBytes / int64(indexes), others: int64(len(s.link.Classes) - 1)}
}

// of is what the consumer of a class may hold, and ask for at a time: half of what there is for an index is for the class of queries, the rest for
// the others, so that many of one do not keep those of another from being pulled.
func (s share) of(class wire.Class) (window, pull int64) {
	part := func(all int64) int64 {
		switch {
		case s.others == 0:
			return all
		case class == wire.ClassQuery:
			return all / 2
		default:
			return all / 2 / s.others
		}
	}
	window = part(s.window)
	return window, min(part(s.pull), window)
}

// grant divides what there is among the indexes that pull and one that is about to, if any, and returns its share. Set.sharing is held.
func (s *Set) grant(more int) share {
	all := s.stored()
	pulling := make(map[string]bool)
	for _, stored := range all {
		pulling[stored.Index] = true
	}
	part := s.shares(len(pulling) + more)
	for _, stored := range all {
		stored.Consumer.Grant(part.of(stored.Class))
	}
	return part
}
