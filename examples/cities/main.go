// Cities finds places by how far they are: the five nearest to one, and all within 100 km. It speaks JSON over plain NATS, as any client can.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"time"

	"github.com/nats-io/nats.go"
)

// answer is what the example reads of a result.
type answer struct {
	Hits []struct {
		Key      string
		Distance float64 // metres
	}
	InRange int `json:"in_range"`
	Error   *struct{ Code, Message string }
}

func main() {
	url := flag.String("nats", nats.DefaultURL, "URL of the NATS server")
	flag.Parse()
	nc, err := nats.Connect(*url)
	if err != nil {
		log.Fatal(err)
	}
	defer nc.Close()

	// Latitude first. Date lines and poles need no care.
	nearest, err := ask(nc, `{"point":[52.0,4.9],"k":5}`)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("The five nearest to 52.0 N, 4.9 E:")
	for _, hit := range nearest.Hits {
		fmt.Printf("  %3.0f km  %s\n", hit.Distance/1000, hit.Key)
	}

	// A radius: all that is within 100 km, the nearest first. total asks how many there are, which may be more than k.
	within, err := ask(nc, `{"point":[52.0,4.9],"radius":100000,"k":1000,"total":true}`)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("Within 100 km: %d\n", within.InRange)
	for _, hit := range within.Hits {
		fmt.Printf("  %3.0f km  %s\n", hit.Distance/1000, hit.Key)
	}

	// And a filter: every hit meets it, too.
	filtered, err := ask(nc, `{"point":[52.0,4.9],"radius":100000,"total":true,"filter":{"country":"Netherlands"}}`)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("Of these in the Netherlands: %d\n", filtered.InRange)

	// No hits, but how many there would be.
	count, err := ask(nc, `{"point":[-17.7,-179.9],"radius":2500000,"k":0}`)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("Within 2,500 km of a place east of the date line: %d\n", count.InRange)
}

// ask sends a query to a worker, and waits for its answer.
func ask(nc *nats.Conn, query string) (*answer, error) {
	reply, err := nc.Request("genie.search.places", []byte(query), 10*time.Second)
	if err != nil {
		return nil, fmt.Errorf("asking places: %w", err)
	}
	var a answer
	if err := json.Unmarshal(reply.Data, &a); err != nil {
		return nil, fmt.Errorf("reading an answer: %w", err)
	}
	if a.Error != nil {
		return nil, errors.New(a.Error.Code + ": " + a.Error.Message)
	}
	return &a, nil
}
