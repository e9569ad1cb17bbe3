// Lookup finds what was meant by what was typed: the nearest name by edit distance, proven to be the nearest.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"

	"github.com/nats-io/nats.go"

	"github.com/geniemq/geniemq/client"
)

func main() {
	url := flag.String("nats", nats.DefaultURL, "URL of the NATS server")
	flag.Parse()
	nc, err := nats.Connect(*url)
	if err != nil {
		log.Fatal(err)
	}
	defer nc.Close()
	c, err := client.New(nc, client.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	for _, typed := range []string{"Rekjavik", "Copenhagn", "Lubljana", "Gotenborg", "Praha"} {
		// Certify makes sure that no other name is nearer, however few n-grams it shares with what was typed.
		result, err := c.Search(context.Background(), "cities", client.Query{Text: typed, K: 1, Certify: true, WithPayload: true})
		if err != nil {
			log.Fatal(err)
		}
		hit := result.Hits[0]
		fmt.Printf("%-10s distance %v %s\n", typed, hit.Distance, hit.Payload)
	}
}
