// SPDX-License-Identifier: Apache-2.0

package kafka

import (
	"strings"
	"testing"
)

func TestURLs(t *testing.T) {
	for _, tt := range []struct{ url, want string }{
		{"kafka://b1/logs", ""},
		{"kafka://b1:9093,[::1]:9092,10.0.0.1/app.logs-1?key={user.id}&value=msgpack&compress=lz4&linger=0s&batch_bytes=512KiB", ""},
		{"kafka://b1/logs?timestamp=event&id_header=-&create=false&time_format=unix_ms&tag_key=-", ""},
		{"kafka://b1/logs?sasl=plain&username=u&password_env=P&tls=true&ca=ca.pem&server_name=b", ""},
		{
			"kafka://b1/logs?value={message}&exactly_once=true&commit_every=1s&transaction_timeout=30s&cursor_topic=c",
			"",
		},
		{"kafka://b1/logs.{tag[0]}?topics=logs.*,audit&max_topics=5&header=app:{app|none}&header=env:prod", ""},
		{"kafka://b1/{app}?topics=logs.[ab]&partitioner=manual&partition={shard|0}&acks=leader", ""},
		{"kafka://b1/logs?partitioner=sticky&acks=none", ""},
		{"kafka://b1/logs.{tag[0]}", "needs topics="},
		{"kafka://b1/logs.{tag[x]}?topics=*", "is no part of the tag"},
		{"kafka://b1/logs.{tag[0}?topics=*", "is no part of the tag"},
		{"kafka://b1/logs.{tag[999]}?topics=*", "is no part of the tag"},
		{"kafka://b1/logs.{tag?topics=*", "without its '}'"},
		{"kafka://b1/{tag}?topics=[a", "is no pattern"},
		{"kafka://b1/{tag}?topics=a,,b", "is no pattern"},
		{"kafka://b1/{tag}?topics=a&max_topics=0", "max_topics"},
		{"kafka://b1/logs?topics=logs", "belong to a topic with placeholders"},
		{"kafka://b1/logs?max_topics=5", "belong to a topic with placeholders"},
		{"kafka://b1/logs?header=app", "name:template"},
		{"kafka://b1/logs?header=:x", "name:template"},
		{"kafka://b1/logs?header=app:{app", "header app: a '{'"},
		{"kafka://b1/logs?partitioner=manual", "belong together"},
		{"kafka://b1/logs?partition={n}", "belong together"},
		{"kafka://b1/logs?partitioner=manual&partition={n", "partition: a '{'"},
		{"kafka://b1/logs?partitioner=random", "partitioner"},
		{"kafka://b1/logs?acks=1", "acks"},
		{"kafka://b1/logs?acks=leader&exactly_once=true", "needs acks=all"},
		{"kafka://b1/logs?value=text", "value is json"},
		{"kafka://b1/logs?value={message", "without its '}'"},
		{"kafka://b1/logs?commit_every=1s", "belong to exactly_once"},
		{"kafka://b1/logs?exactly_once=true&commit_every=40s", "commit_every"},
		{"kafka://b1/logs?exactly_once=true&transaction_timeout=1s", "transaction_timeout"},
		{"kafka://b1/logs?exactly_once=true&cursor_topic=logs", "cursor_topic"},
		{"kafka:/logs", "write kafka://broker"},
		{"kafka://b1", "write kafka://broker"},
		{"kafka:///logs", "has no host"},
		{"kafka://b1,,b2/logs", "has no host"},
		{"kafka://b1,b2:99999/logs", `broker "b2:99999": port "99999" is no number from 0 to 65535`},
		{"kafka://b1:http/logs", `port "http" is no number`},
		{"kafka://[::1]:-1/logs", `port "-1" is no number`},
		{"kafka://b1/", "a topic has"},
		{"kafka://b1/..", "a topic has"},
		{"kafka://b1/a/b", "a topic has"},
		{"kafka://b1/" + strings.Repeat("x", 250), "a topic has"},
		{"kafka://b1/logs?key={user", "without its '}'"},
		{"kafka://b1/logs?key=user}", "without its '{'"},
		{"kafka://b1/logs?key={a..b}", "is no field"},
		{"kafka://b1/logs?key={}", "is no field"},
		{"kafka://b1/logs?compress=brotli", "compress"},
		{"kafka://b1/logs?linger=2h", "linger"},
		{"kafka://b1/logs?batch_bytes=1", "batch_bytes"},
		{"kafka://b1/logs?ca=ca.pem", "belong to tls=true"},
		{"kafka://b1/logs?tls=true&cert=a.pem", "belong together"},
		{"kafka://b1/logs?username=u", "belong to sasl="},
		{"kafka://b1/logs?sasl=plain&username=u", "password_file"},
		{"kafka://b1/logs?sasl=plain&username=u&password_env=P&password_file=f", "password_file"},
		{"kafka://b1/logs?sasl=oauthbearer&token_file=t", ""},
		{"kafka://b1/logs?sasl=oauthbearer", "token_file"},
		{"kafka://b1/logs?sasl=oauthbearer&token_file=t&token_env=T", "give one"},
		{"kafka://b1/logs?sasl=oauthbearer&token_env=T&username=u", "no user"},
		{"kafka://b1/logs?sasl=plain&username=u&password_env=P&token_env=T", "belong to sasl=oauthbearer"},
		{"kafka://b1/logs?sasl=plain&username=u&password_env=secret!", "no name of an environment variable"},
		{"kafka://b1/logs?password=secret", "unknown parameter"},
		{"kafka://b1/logs?ack=all", "unknown parameter"},
	} {
		_, err := plan(tt.url)
		switch {
		case tt.want == "" && err != nil:
			t.Errorf("%s: %v", tt.url, err)
		case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
			t.Errorf("%s: %v, want %q", tt.url, err, tt.want)
		case err != nil && strings.Contains(err.Error(), "secret"):
			t.Errorf("%s: a secret in %v", tt.url, err)
		}
	}
}
