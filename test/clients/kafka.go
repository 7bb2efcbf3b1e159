// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// KafkaCluster is the id of the cluster that all brokers of tests are of.
const KafkaCluster = "MkU3OEVBNTcwNTJENDM2Qk"

// Kafka installs Apache Kafka, and returns the command that runs one of its classes, and the file
// with which a broker's folder begins, as kafka-storage makes it: it has the features of that
// version.
var Kafka = sync.OnceValues(func() (*KafkaHome, error) {
	machine, err := interpreter("java", "default-jdk-headless maven")
	if err != nil {
		return nil, fmt.Errorf("%w: Kafka: %w", ErrMissing, err)
	}
	dir, err := install("kafka", files("kafka/pom.xml"), func(dir string) error {
		lib := filepath.Join(dir, "lib")
		if err := run(dir, "mvn", "--quiet", "--batch-mode", "--strict-checksums",
			"-Dmaven.repo.local="+downloads(dir, "maven"), "dependency:copy-dependencies",
			"-DoutputDirectory="+lib); err != nil {
			return err
		}
		config := filepath.Join(dir, "format.properties")
		lines := []string{
			"process.roles=broker,controller", "node.id=1", "controller.quorum.voters=1@127.0.0.1:1",
			"controller.listener.names=CONTROLLER",
			"listeners=PLAINTEXT://127.0.0.1:2,CONTROLLER://127.0.0.1:1",
			"listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
			"log.dirs=" + filepath.Join(dir, "formatted"),
		}
		if err := os.WriteFile(config, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
			return err
		}
		return run(dir, machine, quiet, "-cp", filepath.Join(lib, "*"), "kafka.tools.StorageTool", "format", "-t",
			KafkaCluster, "-c", config)
	})
	if err != nil {
		return nil, fmt.Errorf("%w: Kafka: %w", ErrMissing, err)
	}
	return &KafkaHome{
		Command: []string{
			machine, quiet, "-Xshare:auto", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xms64m", "-Xmx320m",
			"-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", filepath.Join(dir, "lib", "*"), "kafka.Kafka",
		},
		Bootstrap: filepath.Join(dir, "formatted", "bootstrap.checkpoint"),
	}, nil
})

// A KafkaHome is where Kafka is installed.
type KafkaHome struct {
	Command   []string // runs a broker; the file with its settings follows
	Bootstrap string   // the file to be copied into its folder
}
