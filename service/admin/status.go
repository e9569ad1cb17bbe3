package admin

import "time"

// Status is what a service can say about itself: whether it answers queries, and figures for people.
type Status struct {
	Version string
	// Ready is true only while queries are answered: the connection is up, the consumers make progress, and every
	// index answered a probe query. NotReady says what is missing.
	Ready    bool
	NotReady []string
	// Fault is why the service cannot go on, "" while it can.
	Fault string

	Uptime      time.Duration
	NATS        string
	Embedded    bool
	Engine      string
	EngineNote  string // why it is not the one that auto prefers
	BusyPercent float64
	EngineBusy  time.Duration // for how long it had at least one batch to run, since the start
	Memory      []Holding     // of the engine
	Indexes     []IndexStatus
}

// IndexStatus is the part of a Status that concerns one index.
type IndexStatus struct {
	Name, Kind, Version string
	Retiring            string // the version before, while it still has queries
	Objects             uint32
	Size                string // of the file, for people
	Pending             int64  // messages in the stream that are not answered
	Queries, Errors     int64  // answered since the start, by hits and by errors
	Batches             int64
	PerBatch            float64 // queries per batch
	Example             string  // a query, JSON
	QuerySubject        string
	SearchSubject       string
}
