// SPDX-License-Identifier: Apache-2.0

package kafka

import (
	"context"
	"crypto/tls"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/spillwaylog/spillway/internal/needs"
	"github.com/spillwaylog/spillway/internal/testcert"
	"github.com/spillwaylog/spillway/internal/urls"
)

// reached is what reach says of a URL.
func reached(t *testing.T, url string, within time.Duration) string {
	t.Helper()
	u, err := urls.Parse(url, "kafka")
	must(t, err)
	plan, err := Kind(u, u.Params())
	must(t, err)
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	if err := plan.Reach(ctx); err != nil {
		return err.Error()
	}
	return ""
}

// TestReach: brokers that are there, with their logins, and topics that are there, or may be made.
// Nothing is made, and nothing is written.
func TestReach(t *testing.T) {
	ca := testcert.New(t)
	c := cluster(t, kfake.TLS(&tls.Config{Certificates: []tls.Certificate{ca.Server.TLS}}), kfake.EnableSASL(),
		kfake.Superuser("PLAIN", "ann", "correct"))
	open := cluster(t)
	wrote := make(chan kmsg.Key, 100)
	for _, key := range []kmsg.Key{kmsg.Produce, kmsg.InitProducerID} {
		open.ControlKey(int16(key), func(kmsg.Request) (kmsg.Response, error, bool) {
			open.KeepControl()
			wrote <- key
			return nil, nil, false
		})
	}
	t.Setenv("KAFKA_TEST_PASSWORD", "correct")
	wrong := filepath.Join(t.TempDir(), "password")
	write(t, wrong, "another\n")
	secure := "kafka://" + brokers(c) + "/logs?username=ann&tls=true&ca=" + ca.File
	for _, tt := range []struct{ url, want string }{
		{"kafka://" + brokers(open) + "/logs", ""},
		{"kafka://" + brokers(open) + "/logs?exactly_once=true", ""},
		{"kafka://" + brokers(open) + "/missing", ""},
		{"kafka://" + brokers(open) + "/missing?create=false", "topic missing: UNKNOWN_TOPIC_OR_PARTITION"},
		{
			"kafka://" + brokers(open) + "/logs?exactly_once=true&create=false",
			"topic spillway-cursors: UNKNOWN_TOPIC_OR_PARTITION",
		},
		{"kafka://" + brokers(open) + "/logs.{app}?topics=logs.*", ""},
		{secure + "&sasl=plain&password_env=KAFKA_TEST_PASSWORD", ""},
		{secure + "&sasl=plain&password_file=" + wrong, "kafka: "},
		{secure + "&sasl=plain&password_file=" + wrong + ".none", "none"},
	} {
		said := reached(t, tt.url, time.Minute)
		if (said == "") != (tt.want == "") || !strings.Contains(said, tt.want) || strings.Contains(said, "correct") ||
			strings.Contains(said, "another") {
			t.Errorf("%s: %q, want %q", tt.url, said, tt.want)
		}
	}
	if nobody := needs.Address(); !strings.Contains(reached(t, "kafka://"+nobody+"/logs", 2*time.Second), nobody) {
		t.Error("it is not said which broker cannot be reached")
	}
	open.ControlKey(int16(kmsg.CreateTopics), func(req kmsg.Request) (kmsg.Response, error, bool) {
		r := req.(*kmsg.CreateTopicsRequest)
		resp := r.ResponseKind().(*kmsg.CreateTopicsResponse)
		one := kmsg.NewCreateTopicsResponseTopic()
		one.Topic, one.ErrorCode = r.Topics[0].Topic, kerr.TopicAuthorizationFailed.Code
		if !r.ValidateOnly {
			t.Error("it is made")
		}
		resp.Topics = append(resp.Topics, one)
		return resp, nil, true
	})
	if said := reached(t, "kafka://"+brokers(open)+"/missing", time.Minute); !strings.Contains(said,
		"cannot be made: TOPIC_AUTHORIZATION_FAILED") {
		t.Error(said)
	}
	if said := reached(t, "kafka://"+brokers(open)+"/missing?create=false", time.Minute); !strings.Contains(said,
		"UNKNOWN_TOPIC") {
		t.Errorf("it was made: %q", said)
	}
	select {
	case key := <-wrote:
		t.Errorf("it sent %v", key)
	default:
	}
}
