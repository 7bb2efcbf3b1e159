module github.com/spillwaylog/spillway/adapter/logrus

go 1.25.0

require (
	github.com/sirupsen/logrus v1.10.2
	github.com/spillwaylog/spillway v0.0.0-00010101000000-000000000000
)

require (
	github.com/klauspost/compress v1.20.3 // indirect
	golang.org/x/sys v0.47.0 // indirect
)

replace github.com/spillwaylog/spillway => ../../
