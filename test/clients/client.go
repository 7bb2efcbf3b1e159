// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
)

// Dir is this package's folder as packages of tests see it.
var Dir = filepath.Join("..", "clients")

// ErrMissing says that a program cannot be installed: the machine lacks an interpreter, or cannot
// download.
var ErrMissing = errors.New("the client cannot be installed")

// A Client is a program that sends events with a client of the ecosystem.
type Client struct {
	Name    string
	install func() (command []string, err error)
}

// Install installs the program where it is not yet.
func (c *Client) Install() error {
	if _, err := c.install(); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrMissing, c.Name, err)
	}
	return nil
}

// Run has the program send the order, and calls acked with the number of each event that the
// program takes for stored. The error has what the program said. Its end comes before ctx does.
func (c *Client) Run(ctx context.Context, o *Order, acked func(n int)) error {
	args, err := c.install()
	if err != nil {
		return fmt.Errorf("%w: %s: %w", ErrMissing, c.Name, err)
	}
	order, err := json.Marshal(o)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Stdin = bytes.NewReader(append(order, '\n'))
	var said bytes.Buffer
	cmd.Stderr = &said
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	var bad error
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		n, err := strconv.Atoi(lines.Text())
		if err != nil || n < 0 || n >= o.Count {
			bad = errors.Join(bad, fmt.Errorf("no number of an event: %q", lines.Text()))
			continue
		}
		acked(n)
	}
	err = cmd.Wait()
	if err = errors.Join(err, bad, lines.Err()); err != nil {
		return fmt.Errorf("%s: %w\n%s", c.Name, err, said.String())
	}
	return nil
}

// files are names of files in this package's folder.
func files(names ...string) []string {
	for i, name := range names {
		names[i] = filepath.Join(Dir, name)
	}
	return names
}

// interpreter finds a program that runs others, and says which packages of Debian have it.
func interpreter(name, packages string) (string, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("%s is missing: apt-get install %s", name, packages)
	}
	return path, nil
}

// Python is fluent-logger.
var Python = &Client{Name: "Python fluent-logger", install: sync.OnceValues(func() ([]string, error) {
	base, err := interpreter("python3", "python3-venv")
	if err != nil {
		return nil, err
	}
	dir, err := install("python", files("python/requirements.txt"), func(dir string) error {
		if err := run(dir, base, "-m", "venv", "venv"); err != nil {
			return err
		}
		return run(dir, filepath.Join(dir, "venv", "bin", "python"), "-m", "pip", "install", "--quiet",
			"--disable-pip-version-check", "--cache-dir", downloads(dir, "pip"), "-r", "requirements.txt")
	})
	return []string{filepath.Join(dir, "venv", "bin", "python"), filepath.Join(Dir, "python", "send.py")}, err
})}

// node runs a script of folder node.
func node(script string) func() ([]string, error) {
	return sync.OnceValues(func() ([]string, error) {
		node, err := interpreter("node", "nodejs npm")
		if err != nil {
			return nil, err
		}
		dir, err := install("node", files("node/package.json", "node/package-lock.json"), func(dir string) error {
			return run(dir, "npm", "ci", "--silent", "--no-audit", "--no-fund", "--ignore-scripts", "--cache",
				downloads(dir, "npm"))
		})
		return []string{node, filepath.Join(Dir, "node", script), dir + string(os.PathSeparator)}, err
	})
}

// Node is fluent-logger, NodeOrg is @fluent-org/logger.
var (
	Node    = &Client{Name: "Node fluent-logger", install: node("fluent-logger.js")}
	NodeOrg = &Client{Name: "Node @fluent-org/logger", install: node("fluent-org.js")}
)

// quiet keeps a Java machine from leaving a folder with its figures where temporary files are.
const quiet = "-XX:-UsePerfData"

// java runs the class with an argument.
func java(client string) func() ([]string, error) {
	return func() ([]string, error) {
		machine, err := interpreter("java", "default-jdk-headless maven")
		if err != nil {
			return nil, err
		}
		dir, err := javaFolder()
		lib := filepath.Join(dir, "lib", "*")
		return []string{
			machine, quiet, "-Xshare:auto", "-XX:TieredStopAtLevel=1",
			"-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", dir + string(os.PathListSeparator) + lib, "Send",
			client,
		}, err
	}
}

var javaFolder = sync.OnceValues(func() (string, error) {
	return install("java", files("java/pom.xml", "java/Send.java"), func(dir string) error {
		if err := run(dir, "mvn", "--quiet", "--batch-mode", "--strict-checksums",
			"-Dmaven.repo.local="+downloads(dir, "maven"), "dependency:copy-dependencies",
			"-DoutputDirectory=lib"); err != nil {
			return err
		}
		return run(dir, "javac", "-J"+quiet, "-encoding", "UTF-8", "-cp", filepath.Join("lib", "*"), "Send.java")
	})
})

// Fluency is org.komamitsu:fluency-fluentd, Java is org.fluentd:fluent-logger.
var (
	Fluency = &Client{Name: "Java fluency", install: java("fluency")}
	Java    = &Client{Name: "Java fluent-logger", install: java("fluent-logger")}
)

// Built is a client in Go, whose program build makes.
func Built(name string, build func() (path string, err error)) *Client {
	return &Client{Name: name, install: func() ([]string, error) {
		path, err := build()
		return []string{path}, err
	}}
}
