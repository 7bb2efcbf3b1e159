// SPDX-License-Identifier: Apache-2.0

package kafka

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Bounds of how many topics a template may make.
const (
	defaultTopics = 1000
	maxTopics     = 100_000
)

// longestTopic is Kafka's bound of a topic's name.
const longestTopic = 249

func isTopic(name string) bool {
	for i := range len(name) {
		switch c := name[i]; {
		case 'a' <= c|0x20 && c|0x20 <= 'z', '0' <= c && c <= '9', c == '.', c == '_', c == '-':
		default:
			return false
		}
	}
	return name != "" && len(name) <= longestTopic && name != "." && name != ".."
}

// A choice is which topics events may go to, where a template makes them of events.
type choice struct {
	template template // nil: all go to one topic
	allowed  []string // patterns
	limit    int      // topics
	cursors  string   // a topic that no event may go to
}

// parseAllowed reads patterns: parts between commas, as path.Match has them.
func parseAllowed(text string) ([]string, error) {
	list := strings.Split(text, ",")
	for _, pattern := range list {
		if _, err := path.Match(pattern, ""); err != nil || pattern == "" {
			return nil, fmt.Errorf("%q is no pattern", pattern)
		}
	}
	return list, nil
}

// topics are those that events went to.
type topics struct {
	*choice
	mu    sync.Mutex        // for all writes, and reads by others than fill
	names map[string]string // written by fill alone
	acked map[string]bool   // of names: brokers have acked records of it
}

// Why an event has no topic.
type noTopic int

const (
	empty noTopic = iota
	noName
	notAllowed
	tooMany
	noTopics // how many these are
)

// of is the topic with a name that the template has made.
func (t *topics) of(name []byte) (topic string, why noTopic, ok bool) {
	if topic, ok := t.names[string(name)]; ok {
		return topic, 0, true
	}
	if len(name) > longestTopic {
		return "", noName, false
	}
	topic = string(name)
	allows := func(pattern string) bool {
		is, _ := path.Match(pattern, topic) // it was tried
		return is
	}
	switch {
	case topic == "":
		return "", empty, false
	case !isTopic(topic):
		return "", noName, false
	case topic == t.cursors || !slices.ContainsFunc(t.allowed, allows):
		return "", notAllowed, false
	case len(t.names) >= t.limit:
		return "", tooMany, false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.names == nil {
		t.names = map[string]string{}
	}
	t.names[topic] = topic
	return topic, 0, true
}

// had notes where records went that are acked, and says whether a topic had none before.
func (t *topics) had(records []kgo.Record) (first bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	last := ""
	for i := range records {
		name := records[i].Topic
		if name == last || t.acked[name] {
			last = name
			continue
		}
		if t.acked == nil {
			t.acked = map[string]bool{}
		}
		t.acked[name], first, last = true, true, name
	}
	return first
}

// list are the topics so far, in order, and which of them had records.
func (t *topics) list() (names []string, acked map[string]bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Sorted(maps.Keys(t.names)), maps.Clone(t.acked)
}

// error is why events have no topic, of which the first one would have had that name. All of a
// chunk share it: each reason is a dead letter of its own.
func (t *topics) error(why noTopic, name []byte) error {
	const maxShown = 64
	shown := string(name[:min(len(name), maxShown)])
	switch why {
	case empty:
		return errors.New("the topic of the event is empty")
	case notAllowed:
		return fmt.Errorf("topics= does not allow topic %q", shown)
	case tooMany:
		return fmt.Errorf("max_topics=%d are reached, and topic %q is another one", t.limit, shown)
	}
	return fmt.Errorf("%q, of %d bytes, is no name of a topic", shown, len(name))
}
