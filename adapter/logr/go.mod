module github.com/spillwaylog/spillway/adapter/logr

go 1.25.0

require (
	github.com/go-logr/logr v1.4.4
	github.com/spillwaylog/spillway v0.0.0-00010101000000-000000000000
)

require (
	github.com/klauspost/compress v1.20.3 // indirect
	golang.org/x/sys v0.47.0 // indirect
)

replace github.com/spillwaylog/spillway => ../../
