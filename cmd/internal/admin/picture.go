// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"cmp"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// A family is all series of one name.
type family struct {
	name, help string
	kind       dto.MetricType
	labels     []string // in the order of their names
}

const (
	counts = dto.MetricType_COUNTER
	shows  = dto.MetricType_GAUGE
)

func describe(name, help string, kind dto.MetricType, labels ...string) *family {
	return &family{"spillway_" + name, help, kind, labels}
}

// with are the family's labels with their values. What is no UTF-8, as a URL may be, is replaced:
// it would make the whole scrape invalid.
func (f *family) with(values ...string) []*dto.LabelPair {
	pairs := make([]*dto.LabelPair, len(values))
	for i, v := range values {
		v = strings.ToValidUTF8(v, "\ufffd")
		pairs[i] = &dto.LabelPair{Name: &f.labels[i], Value: &v}
	}
	return pairs
}

// A picture is what one scrape gets. A prometheus.Registry makes it of metrics that it looks at one
// by one, each time; of a hundred outputs there are three thousand, and that took most of a scrape.
type picture map[*family]*dto.MetricFamily

// add adds a series, which keeps the labels.
func (p picture) add(f *family, value float64, labels []*dto.LabelPair) {
	all := p[f]
	if all == nil {
		all = &dto.MetricFamily{Name: &f.name, Help: &f.help, Type: &f.kind}
		p[f] = all
	}
	m := &dto.Metric{Label: labels}
	if f.kind == counts {
		m.Counter = &dto.Counter{Value: &value}
	} else {
		m.Gauge = &dto.Gauge{Value: &value}
	}
	all.Metric = append(all.Metric, m)
}

// beside are the families of a picture, and those of others, by their names.
func (p picture) beside(others prometheus.Gatherer) ([]*dto.MetricFamily, error) {
	all, err := others.Gather()
	for _, f := range p {
		all = append(all, f)
	}
	slices.SortFunc(all, func(a, b *dto.MetricFamily) int { return cmp.Compare(a.GetName(), b.GetName()) })
	return all, err
}
